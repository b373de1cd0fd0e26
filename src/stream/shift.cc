#include "stream/shift.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "stream/fresh_uuid.h"

namespace baton::stream {
namespace {

constexpr Duration kWatch = seconds(1);  // a wait stands still while the machine is suspended, leases do not

Instant now() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return {time.tv_sec * 1000 + time.tv_nsec / 1'000'000};
}

std::chrono::milliseconds until(Instant at) {
  return std::chrono::milliseconds(std::max<std::int64_t>((at - now()).ms, 0));
}

Duration grown(Duration backoff, const ProcessorOptions& options) {
  return std::clamp(Duration{backoff.ms * 2}, options.backoff_min, options.backoff_max);
}

// Nothing has happened, and saying the same again would change nothing.
bool is_refusal(const Error& error) {
  return error.code == Errc::invalid_request || error.code == Errc::too_large;
}

}  // namespace

Processor::Shift::Shift(WorkCoordinator& coordinator, ProcessorOptions options, InstanceId me)
    : coordinator_(coordinator), options_(std::move(options)), in_hand_(options_.lease), me_(me) {
  try {
    for (std::size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { handle_messages(); });
    watch_ = std::jthread([this] { watch(); });
    news_ = std::jthread([this](std::stop_token stop) { listen(stop); });
    loop_ = std::jthread([this] { take_turns(); });
  } catch (...) {
    // There are no more threads to be had. Those that run are joined next, and wait for this.
    const std::scoped_lock lock(mutex_);
    draining_ = over_ = true;
    changed_.notify_all();
    ends_changed_.notify_all();
    throw;
  }
}

void Processor::Shift::drain() {
  {
    const std::scoped_lock lock(mutex_);
    if (!draining_) drain_until_ = now() + options_.drain_max;
    draining_ = true;
    changed_.notify_all();
    ends_changed_.notify_all();
  }
  news_.request_stop();
  const std::scoped_lock once(joining_);
  for (std::jthread* thread : {&loop_, &news_, &watch_}) {
    if (thread->joinable()) thread->join();
  }
  for (std::jthread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

ProcessorCounts Processor::Shift::counts() const {
  const std::scoped_lock lock(mutex_);
  const InHandCounts& counts = in_hand_.counts();
  return {counts.handled, counts.failed, counts.lost, counts.given_back};
}

InstanceId Processor::Shift::instance() const {
  const std::scoped_lock lock(mutex_);
  return me_;
}

WorkBatchRequest Processor::Shift::next_request() {
  WorkBatchRequest request;
  request.instance = {.id = me_,
                      .service = options_.service,
                      .host = options_.host,
                      .process = static_cast<std::int32_t>(::getpid()),
                      .metadata = options_.metadata};
  if (!can_claim(Lane::inbox)) request.flags = request.flags | WorkFlags::skip_inbox_claiming;
  if (!can_claim(Lane::outbox)) request.flags = request.flags | WorkFlags::skip_outbox_claiming;
  request.lease = options_.lease;
  request.stale = options_.stale;
  request.limits.messages = request.limits.streams = std::max(room(), 1);
  // A few deep streams must not fill the hands while threads are idle.
  const auto share = options_.in_hand_max / static_cast<std::int32_t>(options_.threads);
  request.limits.messages_per_stream =
      std::max(std::min({request.limits.messages, options_.messages_per_stream, share}), 1);
  in_hand_.speak(request, now());
  return request;
}

// False: all is said and done.
bool Processor::Shift::take_turn() {
  Lock lock(mutex_);
  wait_for_turn(lock);
  if (draining_) in_hand_.give_back_waiting();
  if (draining_ && in_hand_.handling() == 0 && !in_hand_.has_results()) return false;
  if (lost_claim_ && !draining_ && !take_up_again(lock)) return true;
  in_hand_.let_go_expired(now());
  const WorkBatchRequest request = next_request();
  const bool claimed = claim_of(request).has_value();
  if (claimed) there_may_be_work_ = false;
  const Instant asked = now();
  const std::stop_token given_up = begin_call();
  lock.unlock();
  auto batch = coordinator_.process_work_batch(request, given_up);
  lock.lock();
  end_call();
  // Whoever asks more rarely would be taken for gone, and what it has in hand be given to others.
  next_poll_ = now() + std::min(options_.poll, Duration{options_.stale.ms / 3});
  if (batch) {
    heard(std::move(*batch), claimed, asked);
  } else {
    if (claimed && !lost_claim_ && !is_refusal(batch.error())) lost_claim_ = asked;
    failed_to_ask(batch.error(), lock);
  }
  return true;
}

void Processor::Shift::heard(WorkBatch batch, bool claimed, Instant asked) {
  backoff_ = {};
  in_hand_.hear(batch);
  if (claimed) ++claims_;
  if (!batch.work.empty()) {
    there_may_be_work_ = true;
    empty_handed_for_ = {};
  } else if (claimed) {
    // What somebody has locked is passed over, and nobody rings when it is free again.
    empty_handed_for_ = grown(empty_handed_for_, options_);
    next_poll_ = std::min(next_poll_, now() + empty_handed_for_);
  }
  in_hand_.take(std::move(batch.work), asked);
  changed_.notify_all();
  ends_changed_.notify_all();
}

// What a claim gave whose answer was lost is held in our name, and nobody else will work on it. False: what
// that is could not be found out. All is well only when the next call is, and not because this one was: a
// coordinator whose disk is full answers it, and refuses the others.
bool Processor::Shift::take_up_again(Lock& lock) {
  const InstanceId me = me_;
  const std::stop_token given_up = begin_call();
  lock.unlock();
  auto held = coordinator_.resume(me, given_up);
  lock.lock();
  end_call();
  if (!held && held.error().code != Errc::not_found) {
    failed_to_ask(held.error(), lock);
    return false;
  }
  if (held) in_hand_.take_unknown(std::move(*held), *lost_claim_);
  lost_claim_.reset();
  changed_.notify_all();
  ends_changed_.notify_all();
  return true;
}

void Processor::Shift::failed_to_ask(const Error& error, Lock& lock) {
  // One result that is refused must not keep the others from being heard, or leases from being renewed.
  const bool goes_on = is_refusal(error) && in_hand_.rephrase();
  backoff_ = goes_on ? Duration{} : grown(backoff_, options_);
  there_may_be_work_ = true;
  if (error.code == Errc::lease_lost) {  // evicted
    in_hand_.let_go_all();
    lost_claim_.reset();
    me_ = {fresh_uuid()};
  }
  lock.unlock();
  complain(error);
}

void Processor::Shift::wait_for_turn(Lock& lock) {
  const bool was_draining = draining_;
  if (backoff_.ms > 0) {
    Instant wake = now() + backoff_;
    if (draining_ && now() < drain_until_) wake = std::min(wake, drain_until_);
    // A handler that goes on all the same is no reason to ask more often.
    changed_.wait_for(lock, until(wake), [&] {
      const bool is_late = now() >= drain_until_ && in_hand_.handling() == 0;
      return draining_ && (!was_draining || is_late || has_nothing_left());
    });
    return;
  }
  Instant wake = next_poll_;
  if (const auto renewal = in_hand_.renewal(); renewal && *renewal < wake) wake = *renewal;
  if (sink_rests() && sink_rests_until_ < wake) wake = sink_rests_until_;
  changed_.wait_for(lock, until(wake), [&] {
    return in_hand_.has_results() || (draining_ && (!was_draining || in_hand_.handling() == 0)) ||
           (there_may_be_work_ && (can_claim(Lane::inbox) || can_claim(Lane::outbox)));
  });
}

void Processor::Shift::take_turns() {
  while (take_turn()) {
    const std::scoped_lock lock(mutex_);
    // A database that stays away must not keep us: leases end by themselves.
    if (draining_ && backoff_.ms > 0 && now() >= drain_until_ && in_hand_.handling() == 0) break;
  }
  end();
}

void Processor::Shift::end() {
  Lock lock(mutex_);
  const InstanceId me = me_;
  calls_ = {};  // one that was given up need not be the last: whoever was only slow is to hear that we go
  const std::stop_token given_up = begin_call();
  lock.unlock();
  if (auto left = coordinator_.leave(me, given_up); !left) complain(left.error());
  lock.lock();
  over_ = true;
  changed_.notify_all();
  ends_changed_.notify_all();
}

void Processor::Shift::listen(std::stop_token stop) {
  Duration backoff = options_.backoff_min;
  while (!stop.stop_requested()) {
    const auto woken = coordinator_.wait_for_work(options_.poll, stop);
    Lock lock(mutex_);
    if (woken && *woken) {
      there_may_be_work_ = true;
      empty_handed_for_ = {};
      changed_.notify_all();
      // What there is stays news until it was asked for, which may take long while all hands are full.
      changed_.wait(lock, [&, before = claims_] { return draining_ || claims_ != before; });
    }
    if (woken) {
      backoff = options_.backoff_min;
      continue;
    }
    // The loop asks again after a while in any case, and is the one to complain.
    changed_.wait_for(lock, std::chrono::milliseconds(backoff.ms), [&] { return draining_; });
    backoff = std::min(Duration{backoff.ms * 2}, options_.backoff_max);
  }
}

bool Processor::Shift::has_nothing_left() const {
  return in_hand_.messages() == 0 && !in_hand_.has_results();
}

std::stop_token Processor::Shift::begin_call() {
  calling_since_ = now();
  if (draining_) ends_changed_.notify_all();
  return calls_.get_token();
}

// Whoever has nothing to report needs no answer but for politeness, and does not wait for one that long.
std::optional<Instant> Processor::Shift::call_end() const {
  if (!draining_ || !calling_since_ || calls_.stop_requested()) return {};
  const Instant patient_until = has_nothing_left() ? drain_until_ - options_.drain_max : drain_until_;
  return std::max(patient_until, *calling_since_) + options_.last_call_max;
}

// Leases also end while a call is under way, and so does the time that handlers have, and the call itself.
void Processor::Shift::watch() {
  Lock lock(mutex_);
  while (!over_) {
    const Instant at = now();
    in_hand_.let_go_expired(at);
    if (draining_ && at >= drain_until_) in_hand_.stop_handling();
    if (const auto end = call_end(); end && at >= *end) {
      std::stop_source call = calls_;
      lock.unlock();
      call.request_stop();
      lock.lock();
      continue;
    }
    const auto lease_end = in_hand_.lease_end();
    if (!lease_end && !call_end()) {
      ends_changed_.wait(lock, [&] { return over_ || in_hand_.lease_end() || call_end(); });
      continue;
    }
    Instant end = call_end().value_or(at + kWatch);
    if (lease_end) end = std::min(end, draining_ ? std::min(*lease_end, drain_until_) : *lease_end);
    ends_changed_.wait_for(lock, std::min(until(end), std::chrono::milliseconds(kWatch.ms)));
  }
}

bool Processor::Shift::sink_rests() const { return sink_backoff_.ms > 0 && now() < sink_rests_until_; }

bool Processor::Shift::can_claim(Lane lane) const {
  if (draining_ || room() <= 0) return false;
  return lane == Lane::inbox ? !options_.handlers.empty() : options_.sink && !sink_rests();
}

// A broker that is away is not the message's fault: it goes back, and the outbox rests for a while.
Outcome Processor::Shift::publish(const InHand::Begun& begun) {
  if (begun.work.target.empty()) return done();  // it was for the event store only
  {
    const std::scoped_lock lock(mutex_);
    if (sink_rests()) return given_back();
  }
  const Status published = options_.sink->publish(begun.work, begun.lost);
  Lock lock(mutex_);
  if (published) {
    sink_backoff_ = {};
    return done();
  }
  if (begun.lost.stop_requested()) return given_back();  // it did as it was told
  const Error& error = published.error();
  switch (error.code) {
    case Errc::closed:
    case Errc::unavailable:
    case Errc::deadline_exceeded:
    case Errc::outcome_unknown:
    case Errc::exhausted:
    case Errc::unsupported_version:  // somebody else listens there
      sink_backoff_ = grown(sink_backoff_, options_);
      sink_rests_until_ = now() + std::max(sink_backoff_, error.retry_after);
      lock.unlock();
      complain(error);
      return given_back();
    case Errc::too_large:
      // No repetition makes it smaller. The first failure is for the message's own policy to judge; one that
      // is tried again all the same has none that ends it, or keeps those behind it.
      return failed(error.message, FailureReason::validation_error,
                    begun.work.failures > 0 ? std::optional(FailurePolicy::park) : std::nullopt);
    case Errc::invalid_request: return failed(error.message, FailureReason::validation_error);
    default: return failed(error.message, FailureReason::transport_exception);
  }
}

Outcome Processor::Shift::handle(const InHand::Begun& begun, InstanceId me) {
  const Work& work = begun.work;
  try {
    if (work.lane == Lane::outbox) return publish(begun);
    const auto found = options_.handlers.find(work.type);
    if (found == options_.handlers.end())
      return failed("there is no handler for messages of type " + work.type);
    return found->second({.work = work, .instance = me, .lost = begun.lost});
  } catch (const std::exception& thrown) {
    return failed(thrown.what());
  } catch (...) {
    return failed("it threw something");
  }
}

void Processor::Shift::handle_messages() {
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return over_ || (in_hand_.has_next() && !draining_); });
    if (over_) return;
    const auto begun = in_hand_.next(now());
    if (!begun) continue;
    const InstanceId me = me_;
    lock.unlock();
    const Outcome outcome = handle(*begun, me);
    lock.lock();
    in_hand_.finish(begun->work, outcome);
    // What a handler has reported itself frees its stream for a claim, as what is reported here does.
    if (outcome.kind == Outcome::Kind::reported) there_may_be_work_ = true;
    changed_.notify_all();
  }
}

}  // namespace baton::stream
