#include "engine/engine.h"

#include <utility>

#include "base/check.h"
#include "base/mutant.h"
#include "core/event_codec.h"
#include "core/lease/lease_manager.h"
#include "core/stream/dead_letters.h"
#include "core/stream/forgetting.h"
#include "core/stream/work_decision.h"
#include "core/task/task_manager.h"

namespace baton::engine {
namespace {

constexpr Duration kSilence = minutes(10);  // after which a worker is forgotten
constexpr Duration kLookForSilent = minutes(1);
constexpr Duration kLongestSilence = days(8);  // no instance may be silent for longer without being stale

}  // namespace

Engine::Engine(core::State state, log::Log& log, core::Epoch epoch, EngineOptions options)
    : options_(std::move(options)),
      log_(log),
      epoch_(epoch),
      state_(std::move(state)),
      cache_(options_.cache_bytes),
      bodies_(options_.cache_bytes),
      now_(state_.time),
      last_digest_(state_.last) {
  BATON_CHECK(log.last() == state_.last);
}

core::Moment Engine::moment() const { return {now_, epoch_, state_.last + 1, options_.rules}; }

bool Engine::record(const core::Event& event) {
  if (!log_.has_room()) return false;
  body_.clear();
  core::encode(event, body_);
  const log::Place place = log_.append(static_cast<std::uint16_t>(core::type_of(event)), now_, body_);
  const core::Stamp stamp{.lsn = place.lsn,
                          .epoch = epoch_,
                          .time = now_,
                          .body_end = place.offset + static_cast<std::uint32_t>(body_.size())};
  core::apply(state_, event, stamp);
  if (options_.observer) options_.observer(event, stamp);
  if (state_.last - last_digest_ < options_.digest_every || !log_.has_room()) return true;
  last_digest_ = state_.last + 1;
  return record(core::StateDigest{.digest = state_.digest});
}

bool Engine::start(Instant now, const SecretKey& key_if_new) {
  now_ = std::max(now_, now);
  workers_.instances.begin(now_);
  if (state_.epoch != epoch_) {
    const SecretKey key = state_.epoch == 0 ? key_if_new : state_.key;
    if (!record(core::EpochStarted{.key = key})) return false;
  }
  while (const auto event = core::due(state_, moment())) {
    if (!record(*event)) return false;
  }
  return true;
}

void Engine::begin_turn(Instant now) {
  BATON_CHECK(now >= now_);
  if (!mutant(Mutant::m26_validated_with_a_stale_time)) now_ = now;
  cache_.pass(state_.last);
  if (admission_ == Admission::closed) return;
  for (std::uint32_t count = 0; count < options_.due_per_turn; ++count) {
    const auto event = core::due(state_, moment());
    if (!event) break;
    if (!record(*event)) return;
  }
  forget_finished();
  forget_streams();
  if (now_ - registry_swept_ < kLookForSilent) return;
  registry_swept_ = now_;
  workers_.forget_silent_since(now_ - kSilence);
  const auto silent = core::silent_since(state_, workers_.instances, now_ - kLongestSilence);
  if (silent && !record(*silent)) return;
  workers_.instances.forget_silent_since(now_ - kLongestSilence);
}

void Engine::forget_streams() {
  if (const auto overdue = core::overdue_to_forget(state_, moment()); overdue && !record(*overdue)) return;
  if (const auto surplus = core::surplus_letters(state_, moment())) (void)record(*surplus);
}

void Engine::forget_finished() {
  const std::uint32_t visits_max = std::min(options_.purge_visits_per_turn, state_.queues.end() - 1);
  for (std::uint32_t visits = 0; visits < visits_max; ++visits) {
    if (purge_cursor_ >= state_.queues.end()) purge_cursor_ = 1;
    const auto overdue = core::overdue_for_purge(state_, purge_cursor_, moment());
    if (overdue && !record(*overdue)) return;
    // A queue with more to forget than one entry takes is visited again in the next turn.
    if (overdue && overdue->tasks.size() == core::kPurgeItemsMax) return;
    ++purge_cursor_;
  }
}

bool Engine::handle(std::uint64_t ticket, core::Request& request) {
  if (decide(request) == nullptr) return false;
  answer_.ticket = ticket;
  answers_.push_back(std::move(answer_));
  return true;
}

const Answer* Engine::decide(core::Request& request) {
  if (admission_ == Admission::closed)
    return answer(failure(Errc::exhausted, "the disk is full: free some space, then try again"));
  while (const auto event = core::due_before(state_, workers_, request, moment())) {
    if (!record(*event)) return nullptr;
  }
  if (!log_.has_room()) return nullptr;
  if (const auto* lease = std::get_if<core::LeaseTask>(&request))
    workers_.asked_for_work(lease->ns, lease->worker, lease->capabilities, now_);
  core::Decision decision = core::decide(state_, workers_, request, moment());
  if (auto* append = std::get_if<core::Append>(&decision)) {
    const core::Lsn lsn = state_.last + 1;
    const std::uint64_t message = state_.streams.next_message;
    BATON_CHECK(record(append->event));  // there is room, or it would not have been decided
    keep_bytes(request, lsn);
    if (const auto* work = std::get_if<core::ProcessWork>(&request))
      keep_bodies(*work, std::get<core::WorkProcessed>(append->reply), message);
    answer(std::move(append->reply));
  } else if (auto* reject = std::get_if<core::Reject>(&decision)) {
    answer(failure(reject->code, std::move(reject->message)));
  } else {
    answer(std::get<core::Reply>(std::move(decision)));
  }
  if (const auto* work = std::get_if<core::ProcessWork>(&request))
    core::note_life(state_, *work, now_, workers_.instances);
  return &answer_;
}

void Engine::note_resumption(const std::string& ns, stream::InstanceId instance) {
  core::note_life(state_, {.ns = ns, .instance = instance}, now_, workers_.instances);
  const core::Slot slot = core::streams::find_instance(state_.streams, ns, instance);
  if (slot != 0) workers_.instances.resumed(state_.streams.instances[slot], state_.last);
}

bool Engine::has_resumed(const std::string& ns, stream::InstanceId instance, core::Lsn claim) const {
  const core::Slot slot = core::streams::find_instance(state_.streams, ns, instance);
  return slot != 0 && workers_.instances.has_resumed(state_.streams.instances[slot], claim);
}

// Those that were stored are numbered in the order of the request.
void Engine::keep_bodies(const core::ProcessWork& request, const core::WorkProcessed& reply,
                         std::uint64_t number) {
  for (const stream::Lane lane : core::kLanes) {
    for (std::size_t i = 0; i < request.messages[lane].size(); ++i) {
      if (reply.messages[lane][i] == stream::Verdict::ok)
        bodies_.keep(number++, request.messages[lane][i].body.bytes());
    }
  }
}

// Where the texts of messages lie is known only now that the entry has its place.
void Engine::find_bodies(core::WorkProcessed& reply) {
  const core::streams::Streams& streams = state_.streams;
  for (core::GivenMessage& work : reply.work) {
    const core::streams::Message& message = streams.messages[streams.message_numbers.find(work.number)];
    work.body = message.body;
    work.error = message.error;
    answer_.bodies.push_back(bodies_.find(work.number));
  }
}

// The bytes are in the log and out of the state; the cache has the only other copy.
void Engine::keep_bytes(const core::Request& request, core::Lsn lsn) {
  const auto* submit = std::get_if<core::SubmitTask>(&request);
  if (submit != nullptr && !submit->payload.bytes().empty()) cache_.keep(lsn, submit->payload.bytes());
}

const Answer* Engine::answer(auto&& reply) {
  answer_.lsn = state_.last;
  answer_.reply = std::forward<decltype(reply)>(reply);
  answer_.payload.reset();
  answer_.bodies.clear();
  if (!answer_.reply) return &answer_;
  if (const auto* granted = std::get_if<core::Granted>(&*answer_.reply);
      granted && granted->payload.length > 0)
    answer_.payload = cache_.find(granted->payload.lsn);
  if (auto* work = std::get_if<core::WorkProcessed>(&*answer_.reply)) find_bodies(*work);
  return &answer_;
}

void Engine::release(const std::function<void(Answer&&)>& deliver) {
  const core::Lsn durable = mutant(Mutant::m1_reply_before_flush) ? state_.last : log_.durable();
  const auto early = [](const Answer& answer) {
    return mutant(Mutant::m22_renewal_told_before_durable) && answer.reply &&
           std::holds_alternative<core::Extended>(*answer.reply);
  };
  while (!answers_.empty() && (answers_.front().lsn <= durable || early(answers_.front()))) {
    deliver(std::move(answers_.front()));
    answers_.pop_front();
  }
}

void Engine::heartbeat(std::string_view ns, std::string_view worker, std::uint32_t capacity,
                       core::Capabilities capabilities) {
  workers_.heartbeat(ns, worker, capacity, std::move(capabilities), now_);
}

bool Engine::record_snapshot(core::Lsn lsn, std::uint64_t digest) {
  return record(core::SnapshotTaken{.lsn = lsn, .digest = digest});
}

bool Engine::mark() {
  if (admission_ == Admission::closed) return false;
  last_digest_ = state_.last + 1;
  return record(core::StateDigest{.digest = state_.digest});
}

bool Engine::seal() { return record(core::Sealed{}); }

void Engine::admit(Admission admission) {
  admission_ = admission;
  options_.rules.admit_submissions = admission == Admission::open;
}

std::optional<Instant> Engine::next_due() const {
  if (admission_ == Admission::closed || !log_.has_room()) return {};  // nothing can be recorded now
  if (state_.doomed.head != 0) return now_;
  if (state_.expiries.empty()) return {};
  return state_.expiries.first().at;
}

}  // namespace baton::engine
