#include "tests/sim/stream_instance.h"

#include <algorithm>

#include "tests/sim/trace.h"
#include "tests/sim/worker.h"

namespace baton::sim {
namespace {

using namespace core;

stream::Uuid uuid_of(std::uint64_t kind, std::uint64_t a, std::uint64_t b) {
  stream::Uuid uuid;
  uuid.bytes[0] = static_cast<std::byte>(kind);
  baton::store(uuid.bytes.data() + 4, static_cast<std::uint32_t>(a));
  baton::store(uuid.bytes.data() + 8, b);
  return uuid;
}

}  // namespace

StreamInstance::StreamInstance(std::uint64_t index, const Scenario& scenario, SimClock& clock, Agenda& agenda,
                               Calls& calls)
    : index_(index),
      scenario_(scenario),
      clock_(clock),
      agenda_(agenda),
      calls_(calls),
      random_{mix(scenario.seed, 2000 + index)} {
  plan(clock.now + static_cast<std::int64_t>(random_.below(50)));
}

void StreamInstance::plan(std::int64_t at) {
  agenda_.plan(std::max(at, clock_.now + 1), Due::instance, index_, ++generation_);
}

void StreamInstance::become_honest() {
  healed_ = true;
  for (Job& job : jobs_) job.finish_at = clock_.now;
  plan(clock_.now);
}

void StreamInstance::start_anew() {
  ++started_;
  jobs_.clear();
}

void StreamInstance::wake(std::uint64_t generation) {
  if (generation != generation_) return;
  if (!healed_ && one_in(60)) start_anew();  // it crashed: what it held is for others to take over
  if (!asking_) turn();
  plan(clock_.now + 1 +
       static_cast<std::int64_t>(random_.below(healed_ ? 40 : scenario_[Knob::poll_ms] * 2)));
}

void StreamInstance::turn() {
  const Party party = kFirstInstance + index_;
  const stream::InstanceId id{uuid_of(3, index_, started_)};
  asking_ = true;
  if (healed_ && one_in(10)) {
    calls_.ask(party, PurgeLetters{.ns = kNamespace}, 3);
    return;
  }
  if (!healed_ && one_in(50)) {
    calls_.ask(party, LeaveWork{.ns = kNamespace, .instance = id}, 2);
    start_anew();
    return;
  }
  if (!healed_ && one_in(40)) {
    calls_.ask(party, ReplayLetters{.ns = kNamespace}, 2);
    return;
  }
  // In the end it lasts until it is spoken of again.
  const Duration lease =
      healed_ ? seconds(2) : milliseconds(static_cast<std::int64_t>(scenario_[Knob::ttl_ms]) * 2);
  ProcessWork call{.ns = kNamespace, .instance = id, .stale = kStaleAfter, .lease = lease};
  call.heartbeat = {.id = id, .service = "s", .host = "h", .process = static_cast<std::int32_t>(index_)};
  report(call);
  if (!healed_) store(call);
  call.keep_done = one_in(5);
  if (!one_in(8))
    call.claim = stream::ClaimRequest{.lease = lease,
                                      .stale = call.stale,
                                      .limits = {.streams = 3, .messages = 4, .messages_per_stream = 2}};
  calls_.ask(party, std::move(call), healed_ ? 3 : 2);
}

void StreamInstance::store(ProcessWork& call) {
  for (std::uint64_t left = random_.below(3); left > 0; --left) {
    // Now and then one that was stored before.
    const std::uint64_t number = stored_ > 0 && one_in(6) ? random_.below(stored_) : stored_++;
    StoreMessage message{.id = {uuid_of(1, index_, number)},
                         .body = Blob(std::string(1 + random_.below(100), 'm')),
                         .data_bytes = 10,
                         .is_event = one_in(4)};
    if (!one_in(4)) message.stream = stream::StreamId{uuid_of(2, 0, 1 + random_.below(6))};
    if (one_in(12)) message.policy = stream::FailurePolicy::park_stream;
    call.messages[one_in(2) ? stream::Lane::inbox : stream::Lane::outbox].push_back(std::move(message));
  }
}

void StreamInstance::report(ProcessWork& call) {
  std::size_t told = 0;
  for (Job& job : jobs_) {
    const stream::Lane lane = job.message.lane;
    const stream::Held held{job.message.message, stream::Epoch{static_cast<std::int64_t>(job.message.epoch)}};
    if (clock_.now < job.finish_at) {
      if (one_in(2)) call.renewals[lane].push_back(held);
      continue;
    }
    if (++told > 4) break;  // a small log has small entries
    job.told = true;
    const std::uint64_t choice = healed_ ? 100 : random_.below(100);
    if (choice < 15) {
      call.failures[lane].push_back({.held = held, .error = Blob(std::string(1 + random_.below(30), 'e'))});
    } else if (choice < 25) {
      call.completions[lane].push_back({.held = held});
    } else {
      call.completions[lane].push_back(
          {.held = held, .status = stream::MessageStatus::event_stored | stream::MessageStatus::published});
    }
  }
}

void StreamInstance::answered(const Call& call, const engine::Answer& answer) {
  asking_ = false;
  const auto* asked = std::get_if<ProcessWork>(&call.request);
  if (asked == nullptr) return;
  if (!answer.reply) {
    for (Job& job : jobs_) job.told = false;  // nothing has happened
    if (answer.reply.error().code == Errc::lease_lost) start_anew();
    return;
  }
  if (asked->instance != stream::InstanceId{uuid_of(3, index_, started_)}) return;  // of a life before this
  std::erase_if(jobs_, [](const Job& job) { return job.told; });
  const std::uint64_t ttl = scenario_[Knob::ttl_ms];
  for (const GivenMessage& given : std::get<WorkProcessed>(*answer.reply).work) {
    const std::uint64_t takes = healed_ ? 1 : random_.below(one_in(6) ? ttl * 5 : ttl);
    jobs_.push_back({given, clock_.now + static_cast<std::int64_t>(takes)});
  }
}

}  // namespace baton::sim
