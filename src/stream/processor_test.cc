// A processor whose coordinator is away, or has no room.
#include "stream/processor.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

namespace {
thread_local int threads_left = -1;  // that this one may start; any number
}

// In place of the system's, which a test cannot make fail after so many.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* with) {
  if (threads_left == 0) return EAGAIN;
  if (threads_left > 0) --threads_left;
  static const auto real =
      reinterpret_cast<decltype(&::pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, run, with);
}

namespace baton::stream {
namespace {

constexpr std::chrono::seconds kLong(30);  // only a test that fails takes so long

// Answers nothing but a heartbeat.
class Quiet : public WorkCoordinator {
 protected:
  static std::unexpected<Error> away() { return failure(Errc::unavailable, "nobody is there"); }

 private:
  Result<Standing> do_heartbeat(const Instance&, Duration, std::stop_token) override { return Standing{}; }
  Result<std::vector<Verdict>> do_store(InstanceId, Lane, const std::vector<NewMessage>&, std::int32_t,
                                        std::stop_token) override {
    return away();
  }
  Result<std::vector<Work>> do_claim(InstanceId, const ClaimRequest&, std::stop_token) override {
    return away();
  }
  Result<std::vector<Verdict>> do_complete(InstanceId, Lane, const std::vector<Completion>&, WorkFlags,
                                           std::stop_token) override {
    return away();
  }
  Result<std::vector<Verdict>> do_fail(InstanceId, Lane, const std::vector<Failure>&,
                                       std::stop_token) override {
    return away();
  }
  Result<std::vector<Verdict>> do_renew(InstanceId, Lane, const std::vector<Held>&, Duration,
                                        std::stop_token) override {
    return away();
  }
  Result<std::vector<Verdict>> do_release(InstanceId, Lane, const std::vector<Held>&,
                                          std::stop_token) override {
    return away();
  }
  Result<std::vector<Work>> do_resume(InstanceId, std::stop_token) override { return away(); }
  Result<bool> do_wait_for_work(Duration, std::stop_token) override { return away(); }
  Status do_leave(InstanceId, std::stop_token) override { return away(); }
};

// Gives one message, unless it has none, and refuses everything from then on: at once, or when it is told to.
// One that is full still says what somebody holds.
class Away final : public Quiet {
 public:
  enum class Manner { refuses, hangs, hangs_without_work, is_full };
  explicit Away(Manner manner)
      : hangs_(manner == Manner::hangs || manner == Manner::hangs_without_work),
        is_full_(manner == Manner::is_full),
        has_work_(manner != Manner::hangs_without_work) {}

  bool is_asked(int times, std::chrono::milliseconds within) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, within, [&] { return asked_ >= times; });
  }
  void refuse() {
    const std::scoped_lock lock(mutex_);
    hangs_ = false;
    changed_.notify_all();
  }
  std::atomic<bool> has_left = false, has_given_up = false;

 private:
  Result<WorkBatch> do_process_work_batch(const WorkBatchRequest&, std::stop_token stop) override {
    std::unique_lock lock(mutex_);
    changed_.notify_all();
    if (++asked_ > 1) {
      if (!changed_.wait_for(lock, stop, kLong, [&] { return !hangs_; }))
        has_given_up = stop.stop_requested();
      if (is_full_) return failure(Errc::exhausted, "the disk is full");
      return away();
    }
    WorkBatch batch;
    if (has_work_) batch.work = {{.lane = Lane::inbox, .type = "Thing"}};
    return batch;
  }
  Result<std::vector<Work>> do_resume(InstanceId, std::stop_token) override {
    if (is_full_) return std::vector<Work>{};
    return away();
  }
  Status do_leave(InstanceId, std::stop_token) override {
    has_left = true;
    return away();
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool hangs_;
  const bool is_full_, has_work_;
  int asked_ = 0;
};

// One thread, which has no time left when it is to drain, and asks again after an hour if it is refused.
Result<std::unique_ptr<Processor>> hasty_processor(Away& away, Handler handle) {
  return Processor::start(away, {.service = "orders",
                                 .handlers = {{"Thing", std::move(handle)}},
                                 .threads = 1,
                                 .poll = milliseconds(10),
                                 .backoff_min = hours(1),
                                 .backoff_max = hours(1),
                                 .drain_max = milliseconds(1),
                                 .last_call_max = milliseconds(1)});
}

// S22: it asks as often as it may, and ends when the handler does
TEST(AProcessorThatDrains, KeepsItsPausesWhileAHandlerDoesNotStop) {
  Away away(Away::Manner::refuses);
  std::atomic<bool> is_handling = false, is_in_a_hurry = false;
  auto processor = hasty_processor(away, [&](const Handling& handling) {
    is_handling = true;
    while (!handling.lost.stop_requested()) std::this_thread::yield();
    is_in_a_hurry = away.is_asked(20, std::chrono::milliseconds(200));
    return done();
  });
  ASSERT_TRUE(processor) << processor.error().message;
  while (!is_handling) std::this_thread::yield();
  (*processor)->drain();
  EXPECT_FALSE(is_in_a_hurry);
}

// S22
TEST(AProcessorThatDrains, TellsItsHandlersToStopWhileACallHangs) {
  Away away(Away::Manner::hangs);
  std::atomic<bool> is_handling = false, is_told = false;
  auto processor = hasty_processor(away, [&](const Handling& handling) {
    is_handling = true;
    const auto give_up = std::chrono::steady_clock::now() + kLong;
    while (!handling.lost.stop_requested() && std::chrono::steady_clock::now() < give_up)
      std::this_thread::yield();
    is_told = handling.lost.stop_requested();
    away.refuse();
    return done();
  });
  ASSERT_TRUE(processor) << processor.error().message;
  while (!is_handling || !away.is_asked(2, kLong)) std::this_thread::yield();
  (*processor)->drain();
  EXPECT_TRUE(is_told);
}

// S22, S25, X7: nor is whoever drains kept by a call that nobody answers
TEST(AProcessorThatDrains, GivesUpACallThatHangs) {
  Away away(Away::Manner::hangs);
  auto processor = hasty_processor(away, [](const Handling&) { return done(); });
  ASSERT_TRUE(processor) << processor.error().message;
  ASSERT_TRUE(away.is_asked(2, kLong));
  (*processor)->drain();
  EXPECT_TRUE(away.has_given_up);
}

// S22, S25: it has nothing to say, so it does not wait as long as handlers may take.
TEST(AProcessorThatDrains, GivesUpACallThatHangsSoonerIfNothingIsLeftToReport) {
  Away away(Away::Manner::hangs_without_work);
  auto processor = Processor::start(away, {.service = "orders",
                                           .handlers = {{"Thing", [](const Handling&) { return done(); }}},
                                           .poll = milliseconds(10),
                                           .backoff_min = hours(1),
                                           .backoff_max = hours(1),
                                           .drain_max = hours(1),
                                           .last_call_max = milliseconds(1)});
  ASSERT_TRUE(processor) << processor.error().message;
  ASSERT_TRUE(away.is_asked(2, kLong));
  (*processor)->drain();
  EXPECT_TRUE(away.has_given_up);
  EXPECT_TRUE(away.has_left);
}

// S22: those that were started are ended again, however many they are
TEST(AProcessor, IsRefusedWhereTheSystemHasNoMoreThreads) {
  for (int threads = 0; threads < 4; ++threads) {  // the fourth thread is the one that takes turns
    Away away(Away::Manner::refuses);
    threads_left = threads;
    const auto processor = hasty_processor(away, [](const Handling&) { return done(); });
    threads_left = -1;
    ASSERT_FALSE(processor) << threads;
    EXPECT_EQ(processor.error().code, Errc::exhausted);
    EXPECT_TRUE(away.has_left);
  }
}

// S22: it would ask without a pause
TEST(AProcessor, IsRefusedWithoutTimeBetweenItsQuestions) {
  Away away(Away::Manner::refuses);
  const auto refused = [&](Duration poll, Duration backoff_min, Duration backoff_max) {
    const auto processor =
        Processor::start(away, {.service = "orders",
                                .handlers = {{"Thing", [](const Handling&) { return done(); }}},
                                .poll = poll,
                                .backoff_min = backoff_min,
                                .backoff_max = backoff_max,
                                .drain_max = milliseconds(1)});
    return processor ? std::nullopt : std::optional(processor.error().code);
  };
  const Duration least = milliseconds(1);
  EXPECT_EQ(refused(milliseconds(0), least, least), Errc::invalid_request);
  EXPECT_EQ(refused(milliseconds(-1), least, least), Errc::invalid_request);
  EXPECT_EQ(refused(least, milliseconds(0), least), Errc::invalid_request);
  EXPECT_EQ(refused(least, least, milliseconds(0)), Errc::invalid_request);
  EXPECT_EQ(refused(least, milliseconds(2), least), Errc::invalid_request);
  EXPECT_FALSE(refused(least, least, least));
}

// S22: that it says what we hold does not mean that it takes what we have to say
TEST(AProcessor, AsksLessAndLessOftenWhileTheCoordinatorIsFull) {
  Away away(Away::Manner::is_full);
  auto processor = Processor::start(away, {.service = "orders",
                                           .handlers = {{"Thing", [](const Handling&) { return done(); }}},
                                           .backoff_min = milliseconds(1),
                                           .backoff_max = hours(1),
                                           .drain_max = milliseconds(1)});
  ASSERT_TRUE(processor) << processor.error().message;
  EXPECT_FALSE(away.is_asked(30, std::chrono::milliseconds(200)));
}

// Has one message after the other, and says nothing of it: the next is there once the one before was handled,
// or once it was asked so many times for nothing.
class Silent final : public Quiet {
 public:
  explicit Silent(int asked_in_vain) : in_vain_max_(asked_in_vain) {}

  bool has_given(int messages) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return given_ >= messages; });
  }
  bool was_asked_in_vain() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kLong, [&] { return in_vain_ > 0; });
  }
  void free() {
    const std::scoped_lock lock(mutex_);
    in_vain_ = in_vain_max_;
  }

 private:
  Result<WorkBatch> do_process_work_batch(const WorkBatchRequest& request, std::stop_token) override {
    const std::scoped_lock lock(mutex_);
    changed_.notify_all();
    WorkBatch batch;
    if (has(request.flags, WorkFlags::skip_inbox_claiming)) return batch;
    if (given_ > 0 && in_vain_ < in_vain_max_) {
      ++in_vain_;
      return batch;
    }
    in_vain_ = 0;
    ++given_;
    batch.work = {{.lane = Lane::inbox, .type = "Thing"}};
    return batch;
  }

  const int in_vain_max_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  int given_ = 0, in_vain_ = 0;
};

// S21, S22: no wake-up comes for a stream that a handler's transaction has freed
TEST(AProcessor, AsksAtOnceForWhatAHandlerHasFreed) {
  Silent silent(INT_MAX);
  int handled = 0;  // one after the other
  auto processor = Processor::start(silent, {.service = "orders",
                                             .handlers = {{"Thing",
                                                           [&](const Handling&) {
                                                             // Whoever drains asks no more.
                                                             if (++handled == 3) return reported();
                                                             EXPECT_TRUE(silent.was_asked_in_vain());
                                                             silent.free();
                                                             return reported();
                                                           }}},
                                             .stale = days(7),
                                             .poll = hours(1),
                                             .backoff_min = hours(1),
                                             .backoff_max = hours(1)});
  ASSERT_TRUE(processor) << processor.error().message;
  EXPECT_TRUE(silent.has_given(3));
}

// S20, S22: what somebody has locked, to store into it, is passed over by a claim, and nobody rings for it
TEST(AProcessor, AsksAgainSoonAfterAClaimThatBroughtNothing) {
  Silent silent(3);
  auto processor = Processor::start(silent, {.service = "orders",
                                             .handlers = {{"Thing", [](const Handling&) { return done(); }}},
                                             .stale = days(7),
                                             .poll = hours(1),
                                             .backoff_min = milliseconds(1),
                                             .backoff_max = hours(1)});
  ASSERT_TRUE(processor) << processor.error().message;
  EXPECT_TRUE(silent.has_given(3));
}

}  // namespace
}  // namespace baton::stream
