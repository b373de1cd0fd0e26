// Bad histories, written by hand: each invariant has to notice its own.
#include "tests/sim/history.h"

#include <gtest/gtest.h>

#include "tests/sim/violation.h"

namespace baton::sim {
namespace {

using namespace core;

constexpr Instant kStart{1000};

class Story {
 public:
  Story() { tell(EpochStarted{}); }

  Story& tell(const Event& event) {
    history_.entry(event, {.lsn = history_.last() + 1, .epoch = epoch_, .time = now_});
    return *this;
  }
  Story& wait(std::int64_t ms) {
    now_ = now_ + milliseconds(ms);
    return *this;
  }
  Story& task(std::string_view key = "") { return tell(TaskCreated{.ns = "n", .queue = "q", .key = key}); }
  Story& grant(Lsn task, std::uint32_t attempt = 1) {
    return tell(
        LeaseGranted{.task = task, .attempt = attempt, .expiry = now_ + milliseconds(100), .worker = "w"});
  }
  // The invariant that this entry breaks.
  std::string broken_by(const Event& event) {
    return broken_by(event, {.lsn = history_.last() + 1, .epoch = epoch_, .time = now_});
  }
  std::string broken_by(const Event& event, const Stamp& stamp) {
    try {
      history_.entry(event, stamp);
    } catch (const Violation& violation) {
      return violation.id;
    }
    return "none";
  }
  Lsn next() const { return history_.last() + 1; }
  Instant now() const { return now_; }
  Epoch epoch() const { return epoch_; }

 private:
  History history_;
  Instant now_ = kStart;
  Epoch epoch_ = 1;
};

// Entry 1 is EpochStarted, so the first task is 2 and its first lease 3.
constexpr Lsn kTask = 2;
constexpr Lsn kLease = 3;

TEST(I1, NoticesAGapATimeAndAnEpochThatGoBack) {
  Story story;
  EXPECT_EQ(story.broken_by(Sealed{}, {.lsn = 3, .epoch = 1, .time = kStart}), "I1");
  EXPECT_EQ(story.broken_by(Sealed{}, {.lsn = 2, .epoch = 1, .time = kStart - milliseconds(1)}), "I1");
  EXPECT_EQ(story.broken_by(Sealed{}, {.lsn = 2, .epoch = 0, .time = kStart}), "I1");
  EXPECT_EQ(story.broken_by(Sealed{}, {.lsn = 2, .epoch = 2, .time = kStart}), "I1");
  EXPECT_EQ(story.broken_by(Sealed{}), "none");
}

TEST(I3, NoticesAnEntryAboutATaskThatNeverWas) {
  EXPECT_EQ(Story().broken_by(LeaseExpired{.task = 77}), "I3");
}

TEST(I8, NoticesASecondLease) {
  Story story;
  story.task().grant(kTask);
  EXPECT_EQ(story.broken_by(LeaseGranted{.task = kTask, .attempt = 2, .expiry = story.now() + seconds(1)}),
            "I8");
}

TEST(I9, NoticesAChangeAfterTheEnd) {
  Story story;
  story.task().grant(kTask).tell(TaskCompleted{.task = kTask, .lease = kLease});
  EXPECT_EQ(story.broken_by(TaskDead{.task = kTask}), "I9");
  Story young;
  young.task();
  EXPECT_EQ(young.broken_by(TasksPurged{.tasks = {kTask}}), "I9");
}

TEST(I10, NoticesAttemptsAndFailuresThatAreMiscounted) {
  Story story;
  story.task();
  EXPECT_EQ(story.broken_by(LeaseGranted{.task = kTask, .attempt = 2, .expiry = story.now() + seconds(1)}),
            "I10");
  Story failing;
  failing.task().grant(kTask);
  EXPECT_EQ(failing.broken_by(TaskFailed{.task = kTask, .lease = kLease, .failures = 2}), "I10");
}

TEST(I12, NoticesALeaseThatExpiresEarlyOrHasNoDuration) {
  Story story;
  story.task().grant(kTask).wait(99);
  EXPECT_EQ(story.broken_by(LeaseExpired{.task = kTask, .lease = kLease}), "I12");
  Story flat;
  flat.task();
  EXPECT_EQ(flat.broken_by(LeaseGranted{.task = kTask, .attempt = 1, .expiry = flat.now()}), "I12");
}

TEST(I13, NoticesWhatIsAcceptedFromTheExpiryOn) {
  for (const Event& late :
       {Event(TaskCompleted{.task = kTask, .lease = kLease}),
        Event(TaskFailed{.task = kTask, .lease = kLease, .failures = 1}),
        Event(LeaseExtended{.task = kTask, .lease = kLease, .expiry = kStart + seconds(9)})}) {
    Story story;
    story.task().grant(kTask).wait(100);
    EXPECT_EQ(story.broken_by(late), "I13");
  }
}

TEST(I14, NoticesACompletionWithoutAGrant) {
  Story story;
  story.task();
  EXPECT_EQ(story.broken_by(TaskCompleted{.task = kTask, .lease = 99}), "I14");
  Story old;
  old.task().grant(kTask).wait(100).tell(LeaseExpired{.task = kTask, .lease = kLease}).grant(kTask, 2);
  EXPECT_EQ(old.broken_by(TaskCompleted{.task = kTask, .lease = kLease}), "I14");
}

TEST(I15, NoticesTaskCancelledTwiceOrForALeaseThatIsHeldOrWasNever) {
  Story story;
  story.task().grant(kTask);
  EXPECT_EQ(story.broken_by(TaskCancelled{.task = kTask, .lease = kLease}), "I15");
  Story told;
  told.task().grant(kTask).wait(100).tell(LeaseExpired{.task = kTask, .lease = kLease});
  told.tell(TaskCancelled{.task = kTask, .lease = kLease});
  EXPECT_EQ(told.broken_by(TaskCancelled{.task = kTask, .lease = kLease}), "I15");
  EXPECT_EQ(told.broken_by(TaskCancelled{.task = kTask, .lease = 99}), "I15");
}

TEST(I16, NoticesASecondTaskUnderAKey) {
  Story story;
  story.task("k");
  EXPECT_EQ(story.broken_by(TaskCreated{.ns = "other", .queue = "q", .key = "k"}), "none");
  EXPECT_EQ(story.broken_by(TaskCreated{.ns = "n", .queue = "q", .key = "k"}), "I16");
}

TEST(I19, NoticesAnExpiryThatMovesBack) {
  Story story;
  story.task().grant(kTask).wait(10);
  EXPECT_EQ(story.broken_by(
                LeaseExtended{.task = kTask, .lease = kLease, .expiry = story.now() + milliseconds(50)}),
            "I19");
}

TEST(History, AcceptsALifeAsItShouldBe) {
  Story story;
  story.task("k").grant(kTask).wait(50);
  story.tell(LeaseExtended{.task = kTask, .lease = kLease, .expiry = story.now() + milliseconds(100)})
      .wait(100);
  story.tell(LeaseExpired{.task = kTask, .lease = kLease}).grant(kTask, 2);
  story.tell(TaskFailed{.task = kTask, .lease = 6, .outcome = Ended::retried, .failures = 1});
  story.tell(TaskCancelled{.task = kTask, .lease = kLease}).grant(kTask, 3);
  story.tell(TaskCompleted{.task = kTask, .lease = 9}).tell(TasksPurged{.tasks = {kTask}}).task("k");
}

}  // namespace
}  // namespace baton::sim
