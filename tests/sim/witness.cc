#include "tests/sim/witness.h"

#include <fmt/format.h>

#include "core/digest.h"
#include "core/event_codec.h"
#include "tests/sim/violation.h"

namespace baton::sim {
namespace {

using namespace core;

bool is_due_to_time(const Event& event) {
  if (std::holds_alternative<LeaseExpired>(event)) return true;
  const auto* dead = std::get_if<TaskDead>(&event);
  return dead != nullptr && dead->why == DeadReason::attempts_exhausted;
}

bool is_control(const Event& event) {
  return std::holds_alternative<StateDigest>(event) || std::holds_alternative<SnapshotTaken>(event) ||
         std::holds_alternative<EpochStarted>(event) || std::holds_alternative<Sealed>(event);
}

// The model knows nothing of them; they have invariants of their own.
bool is_about_streams(const Event& event) {
  const auto type = type_of(event);
  return type >= EventType::work_batch_applied && type <= EventType::message_blob_moved;
}
bool is_about_streams(const Request& request) {
  if (const auto* move = std::get_if<MoveBlob>(&request)) return move->message.has_value();
  return std::holds_alternative<ProcessWork>(request) || std::holds_alternative<LeaveWork>(request) ||
         std::holds_alternative<ReplayLetters>(request) || std::holds_alternative<PurgeLetters>(request);
}

// The hash of what a key stands for is the core's own business.
void encode_without_content(const Event& event, Bytes& out) {
  if (const auto* created = std::get_if<TaskCreated>(&event)) {
    TaskCreated bare = *created;
    bare.content = 0;
    encode(Event(bare), out);
  } else {
    encode(event, out);
  }
}

void demand_same(const std::optional<Event>& expected, const Event& actual, const Stamp& at) {
  if (expected && type_of(*expected) == type_of(actual)) {
    static thread_local Bytes wanted, got;
    wanted.clear();
    got.clear();
    encode_without_content(*expected, wanted);
    encode_without_content(actual, got);
    if (wanted == got) return;
  }
  throw Violation{"model",
                  fmt::format("entry {}: {}", at.lsn,
                              model::difference(expected, std::optional(actual)).value_or("differs"))};
}

bool same(const Reply& a, const Reply& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&]<class R>(const R& x) {
        const R& y = std::get<R>(b);
        if constexpr (std::same_as<R, Submitted>) return x.task == y.task && x.existed == y.existed;
        if constexpr (std::same_as<R, Granted>) {
          return x.task == y.task && x.lease == y.lease && x.attempt == y.attempt && x.ttl == y.ttl &&
                 x.payload == y.payload;
        }
        if constexpr (std::same_as<R, Nothing>) return x.why == y.why;
        if constexpr (std::same_as<R, Extended>) return x.ttl == y.ttl;
        if constexpr (std::same_as<R, Committed>) return x.outcome == y.outcome && x.retry_at == y.retry_at;
        if constexpr (std::same_as<R, Purged>) return x.count == y.count;
        if constexpr (std::same_as<R, ExtendedMany>) return false;  // left to the words
        return true;
      },
      a);
}

}  // namespace

std::optional<std::string> difference(const ExpectedReply& expected, const Result<Reply>& actual) {
  if (!expected.reply && !expected.refusal) return {};  // nothing was foretold
  if (expected.reply && actual && same(*expected.reply, *actual)) return {};
  if (expected.refusal && !actual && *expected.refusal == actual.error().code) return {};
  const Decision decision = actual ? Decision(*actual) : Decision(Reject{actual.error().code, ""});
  return model::difference({.reply = expected.reply, .refusal = expected.refusal}, decision);
}

void Witness::deciding(const Request* request, const WorkerRegistry* workers) {
  request_ = request;
  workers_ = workers;
  decided_ = false;
  expected_ = {};
}

void Witness::observe(const Event& event, const Stamp& stamp) {
  now_.history.entry(event, stamp);
  observe_streams(event, stamp);
  if (auto wrong = now_.model.observe(event, stamp)) throw Violation{"model", *wrong};
}

void Witness::observe_streams(const Event& event, const Stamp& stamp) {
  std::visit(
      [&](const auto& fact) {
        if constexpr (requires { now_.streams.happened(fact, stamp); }) now_.streams.happened(fact, stamp);
      },
      event);
}

// What the model would have recorded in this place.
void Witness::judge(const Event& event, const Stamp& stamp, const Rules& rules) {
  const Moment at{stamp.time, stamp.epoch, stamp.lsn, rules};
  if (is_control(event) || is_about_streams(event)) return;
  if (is_due_to_time(event)) {
    demand_same(request_ != nullptr ? now_.model.expected_due_before(*request_, stamp.time)
                                    : now_.model.expected_due(stamp.time),
                event, stamp);
    return;
  }
  if (request_ == nullptr) {
    const auto* purged = std::get_if<TasksPurged>(&event);
    const auto task =
        purged == nullptr ? now_.model.tasks().end() : now_.model.tasks().find(purged->tasks.at(0));
    if (task == now_.model.tasks().end())
      throw Violation{
          "I3", fmt::format("entry {} ({}) was asked for by nobody", stamp.lsn, name_of(type_of(event)))};
    const auto wanted = now_.model.expected_purge(task->second.ns, task->second.queue, at);
    demand_same(wanted ? std::optional<Event>(*wanted) : std::nullopt, event, stamp);
    return;
  }
  if (decided_) throw Violation{"I3", fmt::format("entry {}: a second entry for one request", stamp.lsn)};
  model::Outcome outcome = now_.model.expected(*request_, *workers_, at);
  decided_ = true;
  expected_ = {std::move(outcome.reply), outcome.refusal};
  demand_same(outcome.event, event, stamp);
}

void Witness::entry(const Event& event, const Stamp& stamp, const State& state, const Rules& rules) {
  ledger_.add(event, stamp, state.digest);
  now_.history.entry(event, stamp);
  observe_streams(event, stamp);
  if (const auto* work = std::get_if<WorkBatchApplied>(&event); work != nullptr && work->heard)
    now_.streams.demand_nobody_silent(stamp);
  judge(event, stamp, rules);
  if (auto wrong = now_.model.observe(event, stamp)) throw Violation{"model", *wrong};
  if (state.tasks.used() > rules.tasks_max) throw Violation{"I21", "more tasks are held than may be"};
  if (auto wrong = now_.model.compare_touched(state, event, stamp)) throw Violation{"I5", *wrong};
}

ExpectedReply Witness::expected(const Moment& at) {
  if (decided_) return std::move(expected_);
  if (const auto* work = std::get_if<ProcessWork>(request_))
    now_.streams.called(work->ns, work->instance, at.now);
  if (is_about_streams(*request_)) return {};
  model::Outcome outcome = now_.model.expected(*request_, *workers_, at);
  if (outcome.event) {
    throw Violation{"model", "no entry was made where one was expected: " +
                                 model::difference(outcome.event, std::nullopt).value_or("")};
  }
  return {std::move(outcome.reply), outcome.refusal};
}

void Witness::recovered(const State& state, Lsn acknowledged, bool loss_is_legal) {
  request_ = nullptr;
  if (state.last > ledger_.last())
    throw Violation{"I3", fmt::format("recovery found entry {} of {}", state.last, ledger_.last())};
  if (state.last < acknowledged && !loss_is_legal) {
    throw Violation{"I2",
                    fmt::format("entry {} was acknowledged, recovery ends at {}", acknowledged, state.last)};
  }
  if (state.digest != ledger_.digest(state.last)) {
    throw Violation{"I5",
                    fmt::format("recovery gives another state than there was after entry {}", state.last)};
  }
  if (state.last < ledger_.last()) {
    ledger_.truncate(state.last);
    now_ = at_start_.history.last() <= state.last ? at_start_ : Views{};
    for (Lsn lsn = now_.history.last() + 1; lsn <= state.last; ++lsn)
      observe(ledger_.event(lsn), ledger_[lsn].stamp);
  }
  compare_all(state);
  at_start_ = now_;
}

void Witness::compare_all(const State& state) const {
  if (full_digest(state) != state.digest) throw Violation{"I5", "the digest is not that of the state"};
  if (auto wrong = now_.model.compare(state)) throw Violation{"I5", *wrong};
  now_.streams.compare(state);
}

}  // namespace baton::sim
