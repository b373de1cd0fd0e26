// From a seed to a scenario. Each seed draws its own kind of world: sizes, who takes part, and which faults
// and operations occur at all, so that none is always hidden behind the others.
#include <algorithm>
#include <initializer_list>

#include "tests/sim/coverage.h"
#include "tests/sim/scenario.h"
#include "tests/sim/sim_disk.h"

namespace baton::sim {
namespace {

constexpr std::uint64_t kStepsLeast = 3000;

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : dice_{seed * 0x9e3779b97f4a7c15u + 1} { scenario_.seed = seed; }

  Scenario make() {
    choose_knobs();
    choose_faults();
    for (std::uint64_t at = 5; at < scenario_[Knob::steps];) {
      operation(at);
      at += 1 + dice_.below(spacing_);
    }
    if (faulty_) add_faults();
    if (scenario_[Knob::due_per_turn] <= 2 && scenario_[Knob::ttl_ms] <= 300) add_ambushes();
    sort_by_step(scenario_.items);
    return std::move(scenario_);
  }

 private:
  std::uint64_t among(std::initializer_list<std::uint64_t> values) {
    return values.begin()[dice_.below(values.size())];
  }
  bool one_in(std::uint64_t count) { return dice_.below(count) == 0; }
  // An item in braces: what stands in them is drawn from left to right, with every compiler.
  void add(Item item) {
    item.salt = dice_.next();
    scenario_.items.push_back(item);
  }

  void choose_knobs();
  void choose_faults();
  void operation(std::uint64_t at);
  void add_faults();
  void add_ambushes();
  void disk_fault(std::uint64_t at);

  Scenario scenario_;
  SplitMix64 dice_;
  bool faulty_ = true;
  std::uint64_t spacing_ = 8;
  // Which kinds occur in this seed.
  std::vector<ItemKind> operations_;
  std::vector<ItemKind> crashes_;
  std::vector<ItemKind> others_;
};

void Generator::choose_knobs() {
  Scenario& s = scenario_;
  const std::uint64_t kind = dice_.below(10);
  s[Knob::mode] = static_cast<std::uint64_t>(kind == 0   ? Mode::lying
                                             : kind == 1 ? Mode::rotting
                                                         : Mode::honest);
  s[Knob::steps] = kStepsLeast + dice_.below(3000);
  s[Knob::segment_bytes] = among({16384, 24576, 32768, 65536, 131072, 262144});
  const std::uint64_t most = (s[Knob::segment_bytes] - 8192) / 2 - 256;
  s[Knob::batch_bytes] = std::min(among({2048, 3000, 4096, 8192, 30000}), most);
  s[Knob::digest_every] = among({1, 3, 10, 40, 200});
  s[Knob::snapshot_bytes] = s[Knob::segment_bytes] * among({1, 1, 2, 4});
  s[Knob::retention_count] = among({0, 2, 5, 20, 1000});
  s[Knob::retention_ms] = among({100, 1000, 5000, 3600000});
  s[Knob::tasks_max] = among({8, 40, 100});
  s[Knob::max_attempts] = among({1, 3, 10, 30});
  s[Knob::due_per_turn] = among({1, 1, 2, 1024});
  s[Knob::ttl_ms] = among({5, 30, 100, 300, 1000, 5000});
  s[Knob::fail_percent] = among({10, 30, 80});
  s[Knob::queues] = among({1, 2, 4});
  s[Knob::keys] = among({1, 4, 12});
  s[Knob::capabilities] = among({0, 0, 1, 3});
  s[Knob::payload_bytes] = std::min(among({0, 40, 300, 1200, 4000, 4000}), s[Knob::batch_bytes] - 900);
  s[Knob::cache_bytes] = among({0, 2000, 1 << 20});
  s[Knob::reconfigured] = one_in(3) ? 1 : 0;
  s[Knob::clients] = among({1, 2, 3});
  s[Knob::honest] = among({1, 1, 2, 3, 6});
  for (const Knob knob : {Knob::crashing, Knob::stalling, Knob::doubling, Knob::lying})
    s[knob] = one_in(2) ? 1 : 0;
  s[Knob::net_delay_ms] = among({0, 1, 10, 50});
  s[Knob::flush_ms] = among({0, 1, 5, 20});
  s[Knob::drift_ppm] = one_in(2) ? 1000 : 500 + dice_.below(1001);
  s[Knob::poll_ms] = among({20, 100, 400});
  spacing_ = among({10, 20, 40});
  // With dice of its own, so that what happens to tasks is the same with and without.
  s[Knob::instances] = SplitMix64{s.seed ^ 0x5bd1e995u}.below(3) == 0 ? 0 : 2 + s.seed % 3;
}

void Generator::choose_faults() {
  faulty_ = !one_in(8) || scenario_.mode() != Mode::honest;
  operations_ = {ItemKind::submit, ItemKind::submit, ItemKind::submit, ItemKind::probe, ItemKind::probe};
  for (const ItemKind kind : {ItemKind::cancel, ItemKind::requeue, ItemKind::pause, ItemKind::resume,
                              ItemKind::purge, ItemKind::snapshot, ItemKind::probe, ItemKind::probe}) {
    if (one_in(2)) operations_.push_back(kind);
  }
  if (!faulty_) return;
  if (one_in(2)) scenario_[Knob::lost_permille] = among({10, 50, 200});
  if (one_in(2)) scenario_[Knob::lost_answer_permille] = among({10, 50, 200});
  if (one_in(2)) scenario_[Knob::doubled_permille] = among({10, 50, 200});
  crashes_ = {ItemKind::power_cut};
  for (const ItemKind kind : {ItemKind::kill, ItemKind::power_cut_within, ItemKind::power_cut_within,
                              ItemKind::power_cut_in_recovery, ItemKind::stop}) {
    if (one_in(2)) crashes_.push_back(kind);
  }
  for (const ItemKind kind :
       {ItemKind::stall, ItemKind::failing_sync, ItemKind::failing_operation, ItemKind::disk_full,
        ItemKind::unreadable, ItemKind::slow_flush, ItemKind::wall_jump, ItemKind::cut_off}) {
    if (one_in(3)) others_.push_back(kind);
  }
  if (scenario_.mode() == Mode::rotting) others_.push_back(ItemKind::rot);
}

void Generator::operation(std::uint64_t at) {
  const ItemKind kind = operations_[dice_.below(operations_.size())];
  const std::uint64_t queue = dice_.below(scenario_[Knob::queues]);
  switch (kind) {
    case ItemKind::submit:
      add({at, kind, queue, one_in(2) ? 1 + dice_.below(scenario_[Knob::keys]) : 0});
      return;
    case ItemKind::probe:
      add({at, kind, dice_.below(static_cast<std::uint64_t>(Op::count)),
           dice_.below(static_cast<std::uint64_t>(Relation::none))});
      return;
    case ItemKind::pause:
      add({at, kind, queue});
      add({at + 1 + dice_.below(100), ItemKind::resume, queue});
      return;
    case ItemKind::purge: add({at, kind, queue, dice_.below(4)}); return;
    default: add({at, kind, queue}); return;
  }
}

void Generator::add_faults() {
  const std::uint64_t steps = scenario_[Knob::steps];
  const std::uint64_t crashes = 4 + dice_.below(4);
  for (std::uint64_t i = 0; i < crashes; ++i) {
    const std::uint64_t at = steps * (i + 1) / (crashes + 1) + dice_.below(steps / (crashes + 1)) - 100;
    const ItemKind kind = crashes_[dice_.below(crashes_.size())];
    const std::uint64_t percent = among({0, 20, 50, 50, 80, 100});
    if (scenario_.mode() == Mode::lying && one_in(2)) add({at - 1 - dice_.below(60), ItemKind::lie});
    switch (kind) {
      case ItemKind::power_cut: add({at, kind, percent}); break;
      case ItemKind::power_cut_within:
      case ItemKind::power_cut_in_recovery: add({at, kind, 1 + dice_.below(14), percent}); break;
      default: add({at, kind}); break;
    }
    // A process that was killed left things in the cache that a power cut soon after takes away.
    if (kind == ItemKind::kill && one_in(2)) add({at + dice_.below(40), ItemKind::power_cut, percent});
  }
  if (others_.empty()) return;
  const std::uint64_t count = 2 + dice_.below(10);
  for (std::uint64_t i = 0; i < count; ++i) disk_fault(10 + dice_.below(steps - 20));
}

// Leases are spoken under while the coordinator sleeps past their expiry. With few expiries recorded in a
// turn, the rest are met before their record.
void Generator::add_ambushes() {
  if (faulty_ && one_in(2)) scenario_[Knob::lost_permille] = 300;
  for (int i = 0; i < 6; ++i) {
    const std::uint64_t at = 300 + dice_.below(scenario_[Knob::steps] - 400);
    for (std::uint64_t each = 0; each < 8; ++each) {
      add({at + each * 4, ItemKind::submit, dice_.below(scenario_[Knob::queues]), 0});
      const Op op = one_in(2)   ? static_cast<Op>(dice_.below(static_cast<std::uint64_t>(Op::cancel)))
                    : one_in(2) ? Op::fail
                                : Op::release;
      add({at + 60 + each / 2, ItemKind::probe, static_cast<std::uint64_t>(op),
           static_cast<std::uint64_t>(Relation::current)});
    }
    add({at + 59, ItemKind::stall, scenario_[Knob::ttl_ms] * 2 + 600});
  }
}

void Generator::disk_fault(std::uint64_t at) {
  const ItemKind kind = others_[dice_.below(others_.size())];
  switch (kind) {
    case ItemKind::stall: add({at, kind, among({3, 50, 500, 3000, 20000})}); return;
    case ItemKind::failing_sync: add({at, kind, dice_.below(6), dice_.below(2)}); return;
    case ItemKind::failing_operation: add({at, kind, dice_.below(12)}); return;
    case ItemKind::disk_full:
      add({at, kind, scenario_[Knob::segment_bytes] * dice_.below(5)});
      add({at + 50 + dice_.below(500), ItemKind::disk_free});
      return;
    case ItemKind::unreadable:
      add({at, kind, dice_.below(2)});
      add({at + 20 + dice_.below(200), ItemKind::readable});
      return;
    case ItemKind::slow_flush: add({at, kind, among({30, 400, 30000})}); return;
    case ItemKind::wall_jump: add({at, kind, among({5, 1000, 3600000, 31536000000}), dice_.below(2)}); return;
    case ItemKind::cut_off: {
      const std::uint64_t party = dice_.below(6);
      add({at, kind, party, 1 + dice_.below(2)});
      add({at + 20 + dice_.below(300), kind, party, 0});
      return;
    }
    default: add({at, kind}); return;
  }
}

}  // namespace

Scenario scenario_for(std::uint64_t seed) { return Generator(seed).make(); }

}  // namespace baton::sim
