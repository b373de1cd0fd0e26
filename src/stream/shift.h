// The threads of a processor: one speaks with the coordinator, one waits for wake-ups, one watches the ends
// of leases and of a drain, the others handle messages. What they share is in hand, under one lock; calls are
// made without it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "stream/in_hand.h"
#include "stream/processor.h"

namespace baton::stream {

class Processor::Shift {
 public:
  // std::system_error where there are not so many threads to be had.
  Shift(WorkCoordinator& coordinator, ProcessorOptions options, InstanceId me);

  void drain();
  ProcessorCounts counts() const;
  InstanceId instance() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  // One thread speaks with the coordinator.
  void take_turns();
  bool take_turn();
  void wait_for_turn(Lock& lock);
  WorkBatchRequest next_request();
  void heard(WorkBatch batch, bool claimed, Instant asked);
  bool take_up_again(Lock& lock);
  void failed_to_ask(const Error& error, Lock& lock);
  void end();

  // A call is about to be made, for which the lock is let go. When the time to drain is over, or nothing is
  // left to drain, it has so much more; then it is given up, and no further one is made.
  std::stop_token begin_call();
  void end_call() { calling_since_.reset(); }
  std::optional<Instant> call_end() const;
  bool has_nothing_left() const;  // to be handled, or to be reported

  void listen(std::stop_token stop);
  void watch();

  void handle_messages();
  Outcome handle(const InHand::Begun& begun, InstanceId me);
  Outcome publish(const InHand::Begun& begun);
  // Under the lock, as are the others that say how things are.
  bool sink_rests() const;
  bool can_claim(Lane lane) const;

  std::int32_t room() const { return options_.in_hand_max - static_cast<std::int32_t>(in_hand_.messages()); }
  void complain(const Error& error) const {
    if (options_.trouble) options_.trouble(error);
  }

  WorkCoordinator& coordinator_;
  const ProcessorOptions options_;
  mutable std::mutex mutex_;  // for all that follows, up to the threads
  std::condition_variable changed_;
  std::condition_variable ends_changed_;  // of leases, and of the time to drain
  InHand in_hand_;
  InstanceId me_;
  bool there_may_be_work_ = true;
  std::uint64_t claims_ = 0;  // that were answered
  bool draining_ = false;
  bool over_ = false;
  Instant drain_until_;
  Instant next_poll_;
  std::optional<Instant> calling_since_;
  std::stop_source calls_;
  Duration empty_handed_for_;          // after the last claim that brought nothing, until the next
  Duration backoff_;                   // zero: all is well
  std::optional<Instant> lost_claim_;  // when one was made whose answer did not come
  Duration sink_backoff_;              // zero: all is well there
  Instant sink_rests_until_;
  std::mutex joining_;
  std::vector<std::jthread> threads_;
  std::jthread watch_, news_, loop_;
};

}  // namespace baton::stream
