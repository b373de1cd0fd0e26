#include "tests/sim/world.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/mutant.h"

namespace baton::sim {
namespace {

constexpr std::int64_t kRestartMs = 20;
constexpr std::int64_t kRetryStartMs = 300;

}  // namespace

World::World(const Scenario& scenario, bool lines)
    : scenario_(scenario),
      clock_(static_cast<std::int64_t>(scenario[Knob::drift_ppm]) - 1000),
      calls_(scenario, clock_, agenda_, faults_),
      node_({scenario_, disk_, clock_, agenda_, trace_, faults_, coverage_, witness_, promises_},
            [this](std::uint64_t call, std::uint64_t tried, engine::Answer answer) {
              deliver(call, tried, std::move(answer));
            }) {
  trace_.wanted = lines;
  if (scenario[Knob::drift_ppm] != 1000) faults_.struck(Fault::drift);
  constexpr std::pair<Knob, WorkerKind> kKinds[] = {{Knob::honest, WorkerKind::honest},
                                                    {Knob::crashing, WorkerKind::crashing},
                                                    {Knob::stalling, WorkerKind::stalling},
                                                    {Knob::doubling, WorkerKind::doubling},
                                                    {Knob::lying, WorkerKind::lying}};
  for (const auto& [knob, kind] : kKinds) {
    for (std::uint64_t i = 0; i < scenario[knob]; ++i) {
      const std::uint64_t index = workers_.size();
      workers_.emplace_back(index, scenario[Knob::clients] + index, kind, scenario_, clock_, agenda_, calls_,
                            faults_);
    }
  }
  for (std::uint64_t i = 0; i < scenario[Knob::instances]; ++i)
    instances_.emplace_back(i, scenario_, clock_, agenda_, calls_);
  disk_.before_operation = [this] { interleave(); };
  agenda_.plan(0, Due::restart, node_.incarnation());
}

void World::say(std::string text) {
  if (trace_.wanted) trace_.line(fmt::format("{:>6} {:>8} ms  {}", steps_, clock_.now, text));
}

void World::run() {
  while (steps_ < scenario_[Knob::steps] && !refused_) step();
  if (refused_) return;
  heal();
  converge();
  if (!refused_) check_end();
}

void World::step() {
  while (next_item_ < scenario_.items.size() && scenario_.items[next_item_].at <= steps_) {
    execute(scenario_.items[next_item_++]);
    ++steps_;
  }
  perform_next();
  if (std::exchange(ended_, false)) crashed();
  if (cut_ && (disk_.operations() >= cut_->operation || steps_ >= cut_->step)) {
    const Cut cut = *cut_;
    faults_.struck(Fault::cut_within_operation, disk_.operations() >= cut.operation);
    cut_power(cut.percent, cut.salt);
  }
}

void World::perform_next() {
  if (agenda_.empty()) throw Violation{"L5", "nothing is going to happen any more"};
  const Appointment next = agenda_.next();
  clock_.now = std::max(clock_.now, next.at);
#ifdef BATON_MUTANTS
  mutant_clock_ms = clock_.wall().ms;
#endif
  trace_.note(static_cast<std::uint64_t>(next.what) + 16, static_cast<std::uint64_t>(clock_.now),
              mix(next.a, next.b));
  perform(next);
  ++steps_;
}

// In production the housekeeper has a thread of its own. Here the others get their turns whenever it is about
// to change something on the disk.
void World::interleave() {
  // This fault removes segments under a lock that a flush would wait for.
  if (!housekeeping_ || interleaving_ || mutant(Mutant::m19_segment_removed_before_snapshot_is_durable))
    return;
  interleaving_ = true;
  for (std::uint64_t count = mix(scenario_.seed, steps_) % 12; count > 0 && !ended_; --count) {
    const Appointment next = agenda_.peek();
    if (next.what == Due::housekeeping || next.what == Due::clean_up || next.what == Due::restart) break;
    faults_.struck(Fault::interleaved);
    perform_next();
  }
  interleaving_ = false;
}

void World::failed() {
  if (housekeeping_) {
    ended_ = true;
  } else {
    crashed();
  }
}

void World::perform(const Appointment& next) {
  const bool alive = node_.running() && next.a == node_.incarnation();
  switch (next.what) {
    case Due::arrival: {
      faults_.struck(Fault::reordered, next.a < newest_arrival_);
      newest_arrival_ = std::max(newest_arrival_, next.a);
      if (!node_.running()) return;
      const Call& call = calls_[next.a];
      if (std::holds_alternative<core::LeaseTask>(call.request)) {
        const Worker& worker = workers_[call.party - scenario_[Knob::clients]];
        node_.heartbeat(kNamespace, worker.name(), worker.capacity(), worker.capabilities());
      }
      node_.arrive(next.a, next.b, call.request);
      return;
    }
    case Due::answer: answer_arrives(next.a); return;
    case Due::timeout:
      if (!calls_.timed_out(next.a, next.b)) return;
      if (calls_[next.a].party >= kFirstInstance)
        return instances_[calls_[next.a].party - kFirstInstance].unanswered();
      if (const Call& call = calls_[next.a];
          call.party >= scenario_[Knob::clients] && call.party - scenario_[Knob::clients] < workers_.size()) {
        workers_[call.party - scenario_[Knob::clients]].unanswered(call);
      }
      return;
    case Due::worker: workers_[next.a].wake(next.b); return;
    case Due::instance: instances_[next.a].wake(next.b); return;
    case Due::turn:
      if (alive && !node_.turn(next.b)) failed();
      return;
    case Due::flush:
      if (alive && !node_.flush()) failed();
      return;
    case Due::prepare:
      if (alive) node_.prepare();
      return;
    case Due::housekeeping:
      if (!alive) return;
      housekeeping_ = true;
      node_.housekeep();
      housekeeping_ = false;
      return;
    case Due::clean_up:
      if (alive) node_.clean_up();
      return;
    case Due::restart:
      if (!node_.running() && next.a == node_.incarnation()) restart();
      return;
  }
}

void World::restart() {
  if (next_recovery_) {
    cut_ = Cut{disk_.operations() + next_recovery_->a, next_recovery_->b, next_recovery_->salt,
               steps_ + kCutWithinSteps};
    disk_.power_off_after(cut_->operation);
    next_recovery_.reset();
    faults_.struck(Fault::cut_in_recovery);
  }
  const Start outcome = node_.start();
  switch (outcome) {
    case Start::running:
      say(fmt::format("the coordinator starts at entry {}", witness_.ledger().last()));
      return;
    case Start::failed:
      say("the coordinator cannot start: " + node_.why_not());
      agenda_.plan(clock_.now + kRetryStartMs, Due::restart, node_.incarnation());
      return;
    case Start::refused:
      say("the coordinator refuses to start: " + node_.why_not());
      if (scenario_.mode() != Mode::lying) throw Violation{"I2", "refused to start: " + node_.why_not()};
      refused_ = true;
      return;
  }
}

void World::crashed() {
  if (node_.running()) node_.die();
  ++crashes_;
  say("the coordinator is gone");
  agenda_.plan(clock_.now + kRestartMs, Due::restart, node_.incarnation());
}

void World::cut_power(std::uint64_t percent, std::uint64_t salt) {
  cut_.reset();
  SplitMix64 dice{salt};
  const std::size_t pending = disk_.pending();
  const std::size_t names = disk_.pending_names();
  std::size_t asked = 0;
  std::size_t sectors_kept = 0;
  std::size_t sectors_lost = 0;
  disk_.crash([&] {
    const bool kept = dice.below(100) < percent;
    if (asked++ < pending - names) {
      ++(kept ? sectors_kept : sectors_lost);
    } else {
      faults_.struck(Fault::name_lost, !kept);
    }
    return kept;
  });
  faults_.struck(Fault::power_cut);
  faults_.struck(Fault::sector_lost, sectors_lost);
  faults_.struck(Fault::batch_torn, sectors_kept > 0 && sectors_lost > 0);
  say(fmt::format("the power goes; {} sectors survive, {} do not", sectors_kept, sectors_lost));
  clock_.reboot();
  crashed();
}

void World::deliver(std::uint64_t number, std::uint64_t tried, engine::Answer answer) {
  const Call& call = calls_[number];
  if (answer.reply) {
    if (const auto* submitted = std::get_if<core::Submitted>(&*answer.reply))
      tasks_.push_back(submitted->task);
    if (const auto* granted = std::get_if<core::Granted>(&*answer.reply))
      leases_.push_back({granted->task, granted->lease});
  }
  if (trace_.wanted) {
    say(fmt::format(
        "call {}.{} by party {} (request {}) is answered: {}", number, tried, call.party,
        call.request.index(),
        answer.reply ? fmt::format("reply {}", answer.reply->index()) : answer.reply.error().message));
  }
  calls_.answer(number, tried, std::move(answer));
}

void World::answer_arrives(std::uint64_t number) {
  std::uint64_t call = 0;
  const auto answer = calls_.arrived(number, call);
  if (!answer) return;
  const Party party = calls_[call].party;
  if (party >= kFirstInstance) return instances_[party - kFirstInstance].answered(calls_[call], *answer);
  const std::uint64_t clients = scenario_[Knob::clients];
  if (party >= clients && party - clients < workers_.size())
    workers_[party - clients].answered(calls_[call], *answer);
}

Run World::result() && {
  Run run;
  run.hash = trace_.hash();
  run.steps = steps_;
  run.crashes = crashes_;
  run.entries = witness_.ledger().last();
  run.simulated_ms = clock_.now;
  run.refused = refused_;
  run.faults = faults_;
  run.coverage = coverage_;
  run.lines = trace_.lines();
  return run;
}

Run run(const Scenario& scenario, bool lines) {
  const ThrowOnCheck rather_than_stop;
  auto world = std::make_unique<World>(scenario, lines);
  std::optional<Violation> violation;
  try {
    world->run();
  } catch (const Violation& wrong) {
    violation = wrong;
  } catch (const CheckFailure& wrong) {
    violation = Violation{wrong.condition, fmt::format("a check in {}:{} failed", wrong.file, wrong.line)};
  }
  Run result = std::move(*world).result();
  result.violation = std::move(violation);
  return result;
}

}  // namespace baton::sim
