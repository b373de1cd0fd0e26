// What the items of a scenario do: requests of clients, and faults.
#include <fmt/format.h>

#include <algorithm>

#include "engine/recovery.h"
#include "tests/sim/world.h"

namespace baton::sim {

using namespace core;

void World::execute(const Item& item) {
  trace_.note(8, static_cast<std::uint64_t>(item.kind), item.salt);
  say(fmt::format("-> {} {} {}", name_of(item.kind), item.a, item.b));
  const Party client = item.salt % std::max<std::uint64_t>(scenario_[Knob::clients], 1);
  const std::string queue = fmt::format("q{}", item.a % scenario_[Knob::queues]);
  switch (item.kind) {
    case ItemKind::submit: submit(item); return;
    case ItemKind::cancel:
    case ItemKind::requeue: speak_of_a_task(item); return;
    case ItemKind::pause: calls_.ask(client, PauseQueue{.ns = kNamespace, .queue = queue}, 3); return;
    case ItemKind::resume: calls_.ask(client, ResumeQueue{.ns = kNamespace, .queue = queue}, 3); return;
    case ItemKind::purge:
      calls_.ask(
          client,
          PurgeQueue{.ns = kNamespace, .queue = queue, .count_max = static_cast<std::uint32_t>(item.b)}, 2);
      return;
    case ItemKind::probe: probe(item); return;
    case ItemKind::snapshot:
      if (node_.running()) node_.want_snapshot();
      return;
    default: strike(item); return;
  }
}

void World::strike(const Item& item) {
  switch (item.kind) {
    case ItemKind::kill:
      if (!node_.running()) return cut_power(50, item.salt);  // nobody is there to be killed
      faults_.struck(Fault::kill);
      crashed();
      return;
    case ItemKind::power_cut: cut_power(item.a, item.salt); return;
    case ItemKind::power_cut_within:
      if (!node_.running()) return cut_power(item.b, item.salt);
      cut_ = Cut{disk_.operations() + item.a, item.b, item.salt, steps_ + kCutWithinSteps};
      disk_.power_off_after(cut_->operation);
      return;
    case ItemKind::power_cut_in_recovery:
      next_recovery_ = item;
      if (node_.running()) cut_power(item.b, item.salt + 1);
      return;
    case ItemKind::stop:
      if (!node_.running()) return cut_power(50, item.salt);
      stopped_ = node_.stop();
      faults_.struck(Fault::clean_stop, stopped_);
      for (std::uint64_t i = 0; stopped_ && scenario_.mode() == Mode::rotting && i < 5; ++i)
        rot({.salt = item.salt + i});
      stopped_ = false;
      crashed();
      return;
    case ItemKind::stall:
      if (!node_.running()) return;
      faults_.struck(Fault::stall);
      node_.stall(static_cast<std::int64_t>(item.a));
      return;
    case ItemKind::failing_sync:
      faults_.struck(item.b == 0 ? Fault::sync_failed_cache_kept : Fault::sync_failed_cache_dropped);
      disk_.fail_sync(disk_.syncs() + 1 + item.a,
                      item.b == 0 ? SyncFault::keeps_cache : SyncFault::drops_cache);
      return;
    case ItemKind::failing_operation:
      faults_.struck(Fault::operation_failed);
      disk_.fail_operation(disk_.operations() + 1 + item.a);
      return;
    case ItemKind::lie:
      faults_.struck(Fault::sync_lied);
      disk_.lie_about_syncs(true);
      return;
    case ItemKind::slow_flush:
      if (!node_.running()) return;
      faults_.struck(Fault::slow_flush);
      node_.slow_flush(static_cast<std::int64_t>(item.a));
      return;
    case ItemKind::wall_jump:
      faults_.struck(item.b == 0 ? Fault::wall_forward : Fault::wall_back);
      clock_.jump(item.b == 0 ? static_cast<std::int64_t>(item.a) : -static_cast<std::int64_t>(item.a));
      return;
    case ItemKind::cut_off: calls_.cut_off(item.a, item.b); return;
    case ItemKind::rot: rot(item); return;
    case ItemKind::forge: promises_.forge(witness_.ledger().last() + 1 + item.a); return;
    default: jam_disk(item); return;
  }
}

void World::jam_disk(const Item& item) {
  switch (item.kind) {
    case ItemKind::disk_full:
      faults_.struck(Fault::disk_full);
      disk_.set_capacity(disk_.used_bytes() + item.a);
      return;
    case ItemKind::disk_free:
      faults_.struck(Fault::space_returned);
      disk_.set_capacity(std::uint64_t{1} << 50);
      return;
    case ItemKind::unreadable: {
      const auto names = disk_.list(item.a == 0 ? "wal" : "snap");
      if (!names || names->empty()) return;
      disk_.fail_reads_of((item.a == 0 ? "wal/" : "snap/") + (*names)[item.salt % names->size()]);
      node_.reads_fail = true;
      faults_.struck(Fault::read_failed);
      return;
    }
    case ItemKind::readable:
      disk_.heal_reads();
      node_.reads_fail = false;
      return;
    default: return;
  }
}

void World::submit(const Item& item) {
  // The same key stands for the same content, except now and then.
  const bool keyed = item.b != 0;
  const bool faithful = keyed && item.salt % 8 != 0;
  SplitMix64 dice{faithful ? mix(scenario_.seed, item.b) : item.salt};
  SubmitTask request{.ns = kNamespace, .queue = fmt::format("q{}", item.a % scenario_[Knob::queues])};
  if (keyed) request.key = fmt::format("k{}", item.b);
  if (faithful) request.queue = fmt::format("q{}", item.b % scenario_[Knob::queues]);
  Bytes payload(dice.below(scenario_[Knob::payload_bytes] + 1));
  for (std::byte& byte : payload) byte = static_cast<std::byte>(dice.next());
  request.payload = Blob(std::move(payload));
  request.priority = static_cast<std::uint8_t>(dice.below(3));
  if (dice.below(6) == 0) request.delay = milliseconds(static_cast<std::int64_t>(dice.below(3000)));
  if (scenario_[Knob::capabilities] > 0 && dice.below(4) == 0) {
    const std::string name = fmt::format("c{}", dice.below(scenario_[Knob::capabilities]));
    request.requires_capabilities = Capabilities::of(std::span(&name, 1)).value();
  }
  if (dice.below(2) == 0) {
    request.retry = {.max_failures = static_cast<std::uint32_t>(1 + dice.below(4)),
                     .base = milliseconds(static_cast<std::int64_t>(dice.below(400))),
                     .factor_percent = static_cast<std::uint32_t>(100 + dice.below(200)),
                     .max = milliseconds(2000),
                     .jitter_percent = static_cast<std::uint32_t>(dice.below(50))};
  } else {
    request.retry.max = milliseconds(2000);
  }
  request.max_attempts = static_cast<std::uint32_t>(1 + dice.below(scenario_[Knob::max_attempts]));
  if (dice.below(8) == 0)
    request.max_hold = milliseconds(static_cast<std::int64_t>(scenario_[Knob::ttl_ms] * 2));
  const Party client = item.salt % std::max<std::uint64_t>(scenario_[Knob::clients], 1);
  calls_.ask(client, std::move(request), keyed ? 6 : 1);
}

void World::speak_of_a_task(const Item& item) {
  SplitMix64 dice{item.salt};
  TaskId task{1, 1 + dice.below(1000)};  // most likely no task at all
  if (!tasks_.empty() && dice.below(12) != 0) {
    const std::size_t recent = std::min<std::size_t>(tasks_.size(), 40);
    task = tasks_[tasks_.size() - 1 - dice.below(recent)];
  }
  const Party client = item.salt % std::max<std::uint64_t>(scenario_[Knob::clients], 1);
  if (item.kind == ItemKind::cancel) {
    calls_.ask(client,
               CancelTask{.ns = kNamespace, .task = task, .actor = "client", .note = Blob("unwanted")}, 4);
    return;
  }
  RequeueTask request{.ns = kNamespace, .task = task};
  if (dice.below(2) == 0) request.key = fmt::format("again{}", dice.below(scenario_[Knob::keys] + 1));
  const std::uint32_t tries = request.key.empty() ? 1 : 4;
  calls_.ask(client, std::move(request), tries);
}

// Looks for a task and a lease that stand to each other as wanted, and speaks under that lease.
void World::probe(const Item& item) {
  if (!node_.running()) return;
  SplitMix64 dice{item.salt};
  const auto op = static_cast<Op>(item.a % static_cast<std::uint64_t>(Op::count));
  const auto wanted = static_cast<Relation>(item.b % static_cast<std::uint64_t>(Relation::none));
  const auto state = static_cast<Found>(dice.below(static_cast<std::uint64_t>(Found::count)));
  const State& now = node_.engine().state();
  const Instant at = node_.engine().now();
  TaskId task = tasks_.empty() ? TaskId{1, 2} : tasks_[dice.below(tasks_.size())];
  LeaseId lease{now.epoch, now.last, dice.next()};
  const std::size_t count = leases_.size();
  const std::size_t begin =
      count == 0 ? 0 : dice.below(dice.below(2) == 0 ? count : std::min<std::size_t>(count, 20));
  bool matched = false;
  for (std::size_t i = 0; i < std::min<std::size_t>(count, 300); ++i) {
    const Told& told = leases_[count - 1 - (begin + i) % count];  // the newest first
    const bool foreign = wanted == Relation::other;
    const TaskId named = foreign && !tasks_.empty() ? tasks_[dice.below(tasks_.size())] : told.task;
    LeaseId used = told.lease;
    if (wanted == Relation::unknown) used.nonce ^= 1;
    if (relation(witness_.history(), now.key, named, used, at) != wanted) continue;
    const bool as_wanted = found(witness_.history(), named) == state;
    if (!as_wanted && matched) continue;
    matched = true;
    task = named;
    lease = used;
    if (as_wanted) break;
  }
  const Party prober = scenario_[Knob::clients] + workers_.size();
  const Duration ttl = milliseconds(static_cast<std::int64_t>(scenario_[Knob::ttl_ms]));
  const std::string ns = dice.below(50) == 0 ? "elsewhere" : kNamespace;
  Request request;
  switch (op) {
    case Op::extend: request = ExtendLease{.ns = ns, .task = task, .lease = lease, .ttl = ttl}; break;
    case Op::extend_many: {
      ExtendLeases many{.ns = ns};
      many.items.push_back({.task = task, .lease = lease, .ttl = ttl});
      if (count > 0) {
        const Told& second = leases_[dice.below(count)];
        if (second.lease.lsn != lease.lsn)
          many.items.push_back({.task = second.task, .lease = second.lease, .ttl = ttl});
      }
      request = std::move(many);
      break;
    }
    case Op::complete:
      request = CompleteTask{
          .ns = ns, .task = task, .lease = lease, .result = Blob(std::string(dice.below(40), 'p'))};
      break;
    case Op::fail:
      request = FailTask{
          .ns = ns, .task = task, .lease = lease, .reason = Blob("probe"), .final = dice.below(2) == 0};
      break;
    case Op::release:
      request = ReleaseTask{
          .ns = ns, .task = task, .lease = lease, .delay = dice.below(2) == 0 ? seconds(2) : Duration{}};
      break;
    case Op::cancel: request = CancelTask{.ns = ns, .task = task, .actor = "prober"}; break;
    default: request = RequeueTask{.ns = ns, .task = task}; break;
  }
  calls_.ask(prober, std::move(request), 3, scenario_[Knob::lost_permille] > 0 && dice.below(3) == 0);
}

// A copy of the disk loses power and one bit of it flips, or one sector of it reads as zeros. Starting from
// it has to be refused, or has to give the state that there was.
void World::rot(const Item& item) {
  SplitMix64 dice{item.salt};
  SimDisk copy(disk_);
  const std::uint64_t percent = dice.below(101);
  copy.crash([&] { return dice.below(100) < percent; });
  std::vector<std::string> paths;
  for (const char* folder : {"wal", "snap"}) {
    if (const auto names = copy.list(folder)) {
      for (const std::string& name : *names) paths.push_back(std::string(folder) + "/" + name);
    }
  }
  if (copy.exists("CONTROL")) paths.push_back("CONTROL");
  if (paths.empty()) return;
  const std::string& path = paths[dice.below(paths.size())];
  const std::uint64_t bytes = (*copy.open(path))->size().value();
  if (bytes == 0) return;
  std::uint64_t offset = dice.below(bytes);
  if (dice.below(2) == 0) {
    copy.flip_bit(path, offset, static_cast<unsigned>(dice.below(8)));
    faults_.struck(Fault::bit_rotted);
  } else {
    Bytes content = copy.content(path);
    offset = offset / log::kSectorBytes * log::kSectorBytes;
    // A sector that holds something, if there is one behind.
    while (offset + log::kSectorBytes < bytes && content[offset] == std::byte{0}) offset += log::kSectorBytes;
    const std::size_t length = std::min<std::size_t>(log::kSectorBytes, bytes - offset);
    std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(offset), length, std::byte{0});
    copy.set_content(path, content);
    faults_.struck(Fault::sector_zeroed);
  }
  auto recovered = engine::recover(copy, {.log = {.segment_bytes = scenario_[Knob::segment_bytes],
                                                  .batch_bytes = scenario_[Knob::batch_bytes]}});
  if (!recovered) {
    faults_.struck(Fault::rot_refused);
    return;
  }
  const Lsn last = recovered->state.last;
  const Ledger& ledger = witness_.ledger();
  // Of a directory that was closed not one entry may be missing.
  const Lsn least = stopped_ ? ledger.last() : std::min(promises_.acknowledged(), node_.proven());
  if (last < least || last > ledger.last() || recovered->state.digest != ledger.digest(last)) {
    throw Violation{"I22", fmt::format("damage at offset {} of {} went unnoticed: the log now ends at {}",
                                       offset, path, last)};
  }
  faults_.struck(Fault::rot_harmless);
}

}  // namespace baton::sim
