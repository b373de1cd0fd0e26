#include "stream/processor.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "stream/checks.h"
#include "stream/fresh_uuid.h"
#include "stream/in_hand.h"
#include "stream/report.h"

namespace baton::stream {
namespace {

using Clock = std::chrono::steady_clock;

Instant now() {
  return {std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count()};
}

}  // namespace

class Processor::Shift {
 public:
  Shift(WorkCoordinator& coordinator, ProcessorOptions options)
      : coordinator_(coordinator), options_(std::move(options)), in_hand_(options_.lease) {
    for (std::size_t i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { handle_messages(); });
    news_ = std::jthread([this](std::stop_token stop) { listen(stop); });
    loop_ = std::jthread([this] { take_turns(); });
  }

  void drain() {
    {
      const std::scoped_lock lock(mutex_);
      if (!draining_) drain_until_ = now() + options_.drain_max;
      draining_ = true;
      changed_.notify_all();
    }
    news_.request_stop();
    const std::scoped_lock once(joining_);
    if (loop_.joinable()) loop_.join();
    if (news_.joinable()) news_.join();
    for (std::jthread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  ProcessorCounts counts() const {
    const std::scoped_lock lock(mutex_);
    const InHandCounts& counts = in_hand_.counts();
    return {counts.handled, counts.failed, counts.lost, counts.given_back};
  }
  InstanceId instance() const {
    const std::scoped_lock lock(mutex_);
    return me_;
  }

 private:
  // One thread speaks with the coordinator.
  void take_turns();
  bool take_turn();
  void wait_for_turn(std::unique_lock<std::mutex>& lock);
  WorkBatchRequest next_request(std::int32_t room);
  Result<WorkBatch> say(const WorkBatchRequest& request, bool claims);
  void end();

  // One thread waits for wake-ups.
  void listen(std::stop_token stop);

  // The others handle messages.
  void handle_messages();
  Outcome handle(const InHand::Begun& begun, InstanceId me);

  void complain(const Error& error) const {
    if (options_.trouble) options_.trouble(error);
  }

  WorkCoordinator& coordinator_;
  const ProcessorOptions options_;
  mutable std::mutex mutex_;  // for all that follows, up to the threads
  std::condition_variable changed_;
  InHand in_hand_;
  InstanceId me_{fresh_uuid()};
  bool there_may_be_work_ = true;
  bool draining_ = false;
  bool over_ = false;
  Instant drain_until_;
  Instant next_poll_;
  Duration backoff_;  // zero: all is well
  std::mutex joining_;
  std::vector<std::jthread> threads_;
  std::jthread news_, loop_;
};

WorkBatchRequest Processor::Shift::next_request(std::int32_t room) {
  WorkBatchRequest request;
  request.instance = {.id = me_,
                      .service = options_.service,
                      .host = options_.host,
                      .process = static_cast<std::int32_t>(::getpid()),
                      .metadata = options_.metadata};
  if (options_.handlers.empty()) request.flags = WorkFlags::skip_inbox_claiming;
  request.lease = options_.lease;
  request.stale = options_.stale;
  request.limits.messages = request.limits.streams = std::max(room, 1);
  request.limits.messages_per_stream = std::min(request.limits.messages, options_.messages_per_stream);
  in_hand_.speak(request, now());
  return request;
}

Result<WorkBatch> Processor::Shift::say(const WorkBatchRequest& request, bool claims) {
  if (claims && options_.sink) return coordinator_.process_work_batch(request);
  auto batch = report(coordinator_, request);
  if (!batch || !claims) return batch;
  auto work = coordinator_.claim(
      request.instance.id,
      {.outbox = false, .lease = request.lease, .stale = request.stale, .limits = request.limits});
  // What was said has been heard; there will be another claim.
  if (work)
    batch->work = std::move(*work);
  else
    complain(work.error());
  return batch;
}

// False: all is said and done.
bool Processor::Shift::take_turn() {
  std::unique_lock lock(mutex_);
  wait_for_turn(lock);
  if (draining_) in_hand_.give_back_waiting();
  if (draining_ && now() >= drain_until_) in_hand_.stop_handling();
  if (draining_ && in_hand_.handling() == 0 && !in_hand_.has_results()) return false;
  in_hand_.let_go_expired(now());
  const std::int32_t room = options_.in_hand_max - static_cast<std::int32_t>(in_hand_.messages());
  const bool claims = !draining_ && room > 0;
  if (claims) there_may_be_work_ = false;
  const Instant asked = now();
  const WorkBatchRequest request = next_request(room);
  lock.unlock();
  auto batch = say(request, claims);
  lock.lock();
  next_poll_ = now() + options_.poll;
  if (!batch) {
    backoff_ = std::clamp(Duration{backoff_.ms * 2}, options_.backoff_min, options_.backoff_max);
    there_may_be_work_ = true;
    if (batch.error().code == Errc::lease_lost) {  // evicted
      in_hand_.let_go_all();
      me_ = {fresh_uuid()};
    }
    lock.unlock();
    complain(batch.error());
    return true;
  }
  backoff_ = {};
  in_hand_.hear(*batch);
  if (!batch->work.empty()) there_may_be_work_ = true;
  in_hand_.take(std::move(batch->work), asked);
  changed_.notify_all();
  return true;
}

void Processor::Shift::wait_for_turn(std::unique_lock<std::mutex>& lock) {
  const auto until = [&](Instant at) {
    return Clock::now() + std::chrono::milliseconds(std::max<std::int64_t>((at - now()).ms, 0));
  };
  if (backoff_.ms > 0) {
    changed_.wait_for(lock, std::chrono::milliseconds(backoff_.ms),
                      [&] { return draining_ && now() >= drain_until_; });
    return;
  }
  Instant wake = next_poll_;
  if (const auto renewal = in_hand_.renewal(); renewal && *renewal < wake) wake = *renewal;
  if (draining_ && drain_until_ < wake && now() < drain_until_) wake = drain_until_;
  changed_.wait_until(lock, until(wake), [&] {
    const bool has_room = in_hand_.messages() < static_cast<std::size_t>(options_.in_hand_max);
    return in_hand_.has_results() || (draining_ && in_hand_.handling() == 0) ||
           (there_may_be_work_ && has_room && !draining_);
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
  if (auto left = coordinator_.leave(instance()); !left) complain(left.error());
  const std::scoped_lock lock(mutex_);
  over_ = true;
  changed_.notify_all();
}

void Processor::Shift::listen(std::stop_token stop) {
  Duration backoff = options_.backoff_min;
  while (!stop.stop_requested()) {
    const auto woken = coordinator_.wait_for_work(options_.poll, stop);
    std::unique_lock lock(mutex_);
    if (woken && *woken) {
      there_may_be_work_ = true;
      changed_.notify_all();
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

Outcome Processor::Shift::handle(const InHand::Begun& begun, InstanceId me) {
  const Work& work = begun.work;
  try {
    if (work.lane == Lane::outbox) {
      if (work.target.empty()) return done();  // it was for the event store only
      const Status published = options_.sink->publish(work, begun.lost);
      if (published) return done();
      return failed(published.error().message, published.error().code == Errc::invalid_request
                                                   ? FailureReason::validation_error
                                                   : FailureReason::transport_exception);
    }
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
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return over_ || in_hand_.has_next(); });
    if (over_) return;
    const auto begun = in_hand_.next();
    const InstanceId me = me_;
    lock.unlock();
    const Outcome outcome = handle(*begun, me);
    lock.lock();
    in_hand_.finish(begun->work, outcome);
    changed_.notify_all();
  }
}

Result<std::unique_ptr<Processor>> Processor::start(WorkCoordinator& coordinator, ProcessorOptions options) {
  if (auto fits = check(Instance{.id = {fresh_uuid()}, .service = options.service, .host = options.host});
      !fits)
    return std::unexpected(fits.error());
  if (auto fits = check_seconds(options.lease, "a lease"); !fits) return std::unexpected(fits.error());
  if (auto fits = check_seconds(options.stale, "the time after which an instance is stale"); !fits)
    return std::unexpected(fits.error());
  if (options.handlers.empty() && !options.sink)
    return failure(Errc::invalid_request, "a processor needs a handler or a sink");
  if (options.threads < 1 || options.threads > kThreadsMax)
    return failure(Errc::invalid_request, "a processor has 1 to 1024 threads");
  if (options.in_hand_max < 1 || options.in_hand_max > static_cast<std::int32_t>(kItemsMax) ||
      options.messages_per_stream < 1)
    return failure(Errc::invalid_request, "a processor has 1 to 10000 messages in hand");
  return std::unique_ptr<Processor>(new Processor(std::make_unique<Shift>(coordinator, std::move(options))));
}

Processor::Processor(std::unique_ptr<Shift> shift) : shift_(std::move(shift)) {}
Processor::~Processor() { drain(); }
void Processor::drain() { shift_->drain(); }
ProcessorCounts Processor::counts() const { return shift_->counts(); }
InstanceId Processor::instance() const { return shift_->instance(); }

}  // namespace baton::stream
