// The checks say nothing about a history that is right, and notice one that is not, whatever is wrong with
// it.
#include "tests/chaos/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace baton::chaos {
namespace {

using testing::IsEmpty;
using testing::Not;

// Two tasks: one is completed by its second worker, the first one comes too late; the other fails once.
struct Story {
  std::vector<Operation> history;
  Log log;

  Operation& operation(Kind kind, Lsn task, Lsn lease) {
    return *std::ranges::find_if(
        history, [&](const Operation& o) { return o.kind == kind && o.task == task && o.lease == lease; });
  }
  void remove(Lsn lsn) {
    std::erase_if(log, [&](const Entry& entry) { return entry.lsn == lsn; });
  }
};

Operation said(Kind kind, std::string who, Lsn task, Lsn lease, std::string word, Lsn lsn, std::int64_t at) {
  return {.kind = kind,
          .outcome = Outcome::done,
          .who = std::move(who),
          .word = std::move(word),
          .task = task,
          .lease = lease,
          .attempt = kind == Kind::lease ? 1u : 0u,
          .lsn = lsn,
          .ttl_us = kind == Kind::lease ? 100'000 : 0,
          .invoked_us = at * 1000,
          .returned_us = at * 1000 + 5};
}

Operation submitted(std::string key, Lsn task, std::int64_t at) {
  Operation o = said(Kind::submit, "c", task, 0, "", task, at);
  o.key = std::move(key);
  return o;
}

Story good_story() {
  Story story{
      .history = {submitted("a", 2, 0), submitted("b", 3, 10), said(Kind::lease, "v", 2, 4, "", 4, 20),
                  said(Kind::lease, "w", 2, 6, "", 6, 200), said(Kind::write, "w", 2, 6, "", 0, 210),
                  said(Kind::complete, "w", 2, 6, "COMMITTED", 7, 220),
                  said(Kind::write, "v", 2, 4, "", 0, 230),
                  said(Kind::complete, "v", 2, 4, "CANCELLED", 8, 240),
                  said(Kind::lease, "v", 3, 9, "", 9, 250), said(Kind::fail, "v", 3, 9, "COMMITTED", 10, 260),
                  said(Kind::lease, "w", 3, 11, "", 11, 270), said(Kind::write, "w", 3, 11, "", 0, 280),
                  said(Kind::complete, "w", 3, 11, "COMMITTED", 12, 290),
                  said(Kind::get, "c", 3, 0, "completed", 12, 300)},
      .log = {{.lsn = 1, .type = "EpochStarted"},
              {.lsn = 2, .type = "TaskCreated", .task = 2, .key = "a"},
              {.lsn = 3, .type = "TaskCreated", .task = 3, .key = "b"},
              {.lsn = 4, .type = "LeaseGranted", .task = 2, .lease = 4, .worker = "v", .attempt = 1},
              {.lsn = 5, .type = "LeaseExpired", .task = 2, .lease = 4},
              {.lsn = 6, .type = "LeaseGranted", .task = 2, .lease = 6, .worker = "w", .attempt = 2},
              {.lsn = 7, .type = "TaskCompleted", .task = 2, .lease = 6},
              {.lsn = 8, .type = "TaskCancelled", .task = 2, .lease = 4},
              {.lsn = 9, .type = "LeaseGranted", .task = 3, .lease = 9, .worker = "v", .attempt = 1},
              {.lsn = 10, .type = "TaskFailed", .task = 3, .lease = 9, .outcome = "retried"},
              {.lsn = 11, .type = "LeaseGranted", .task = 3, .lease = 11, .worker = "w", .attempt = 2},
              {.lsn = 12, .type = "TaskCompleted", .task = 3, .lease = 11}}};
  story.operation(Kind::lease, 2, 6).attempt = 2;
  story.operation(Kind::lease, 3, 11).attempt = 2;
  return story;
}

TEST(Checks, SayNothingAboutAGoodStory) {
  const Story story = good_story();
  EXPECT_THAT(check_order(story.history), IsEmpty());
  EXPECT_THAT(check_against_log(story.history, story.log), IsEmpty());
  EXPECT_THAT(check_tasks(story.history), IsEmpty());
  EXPECT_THAT(check_ownership(story.history), IsEmpty());
  const ResourceReport resource = check_resource(story.history);
  EXPECT_THAT(resource.complaints, IsEmpty());
  EXPECT_EQ(resource.stale, 1u);
  const Totals totals = check_totals(story.history, story.log);
  EXPECT_THAT(totals.complaints, IsEmpty());
  EXPECT_EQ(totals.submitted, 2u);
  EXPECT_EQ(totals.repeated_work, 2u);
}

TEST(Checks, NoticeALostAcknowledgement) {
  Story story = good_story();
  story.log.pop_back();
  EXPECT_THAT(check_against_log(story.history, story.log), Not(IsEmpty()));
  EXPECT_EQ(check_totals(story.history, story.log).lost, 1u);
}

TEST(Checks, NoticeATaskThatNobodySubmitted) {
  Story story = good_story();
  story.log.push_back({.lsn = 13, .type = "TaskCreated", .task = 13, .key = "z"});
  EXPECT_THAT(check_against_log(story.history, story.log), Not(IsEmpty()));
  EXPECT_EQ(check_totals(story.history, story.log).phantom, 1u);
}

TEST(Checks, AllowWhatMayHaveHappened) {
  Story story = good_story();
  story.log.push_back({.lsn = 13, .type = "TaskCreated", .task = 13, .key = "z"});
  story.log.push_back(
      {.lsn = 14, .type = "LeaseGranted", .task = 13, .lease = 14, .worker = "v", .attempt = 1});
  for (const Kind kind : {Kind::submit, Kind::lease})
    story.history.push_back(
        {.kind = kind, .outcome = Outcome::unknown, .who = "v", .key = "z", .invoked_us = 400'000});
  EXPECT_THAT(check_against_log(story.history, story.log), IsEmpty());
  EXPECT_EQ(check_totals(story.history, story.log).recovered, 1u);
}

TEST(Checks, NoticeASecondCompletion) {
  Story story = good_story();
  story.log.push_back({.lsn = 13, .type = "TaskCompleted", .task = 2, .lease = 6});
  EXPECT_THAT(check_against_log(story.history, story.log), Not(IsEmpty()));
  EXPECT_EQ(check_totals(story.history, story.log).doubly_completed, 1u);
}

TEST(Checks, NoticeThatTwoWereToldTheyHadCompletedIt) {
  Story story = good_story();
  story.operation(Kind::complete, 2, 4).word = "COMMITTED";
  EXPECT_THAT(check_tasks(story.history), Not(IsEmpty()));
  EXPECT_THAT(check_against_log(story.history, story.log), Not(IsEmpty()));
  EXPECT_THAT(check_resource(story.history).complaints, Not(IsEmpty()));
}

TEST(Checks, NoticeAnLsnThatIsOutOfOrder) {
  Story story = good_story();
  story.operation(Kind::complete, 3, 11).lsn = 2;
  EXPECT_THAT(check_order(story.history), Not(IsEmpty()));
}

TEST(Checks, NoticeTwoWhoGotTheSameEntry) {
  Story story = good_story();
  story.operation(Kind::lease, 3, 9).lsn = 8;
  EXPECT_THAT(check_order(story.history), Not(IsEmpty()));
}

TEST(Checks, NoticeThatTwoHoldATask) {
  Story story = good_story();
  story.operation(Kind::lease, 2, 4).ttl_us = 10'000'000;
  EXPECT_THAT(check_ownership(story.history), Not(IsEmpty()));
}

TEST(Checks, NoticeALeaseOutOfNowhere) {
  Story story = good_story();
  std::erase_if(story.history, [](const Operation& o) { return o.kind == Kind::lease && o.lease == 9; });
  EXPECT_THAT(check_against_log(story.history, story.log), Not(IsEmpty()));
}

TEST(Checks, NoticeALeaseThatIsNotInTheLog) {
  Story story = good_story();
  story.remove(11);
  EXPECT_THAT(check_against_log(story.history, story.log), Not(IsEmpty()));
}

TEST(Checks, NoticeAnExtensionOfALeaseThatIsOver) {
  Story story = good_story();
  story.history.push_back(said(Kind::extend, "v", 2, 4, "extended", 0, 235));
  EXPECT_THAT(check_tasks(story.history), Not(IsEmpty()));
}

TEST(Checks, NoticeAStateThatWasNot) {
  Story story = good_story();
  story.operation(Kind::get, 3, 0).word = "leased";
  EXPECT_THAT(check_against_log(story.history, story.log), Not(IsEmpty()));
}

TEST(Checks, NoticeThatSomethingHappenedWhichAClientDenies) {
  Story story = good_story();
  story.history[0].outcome = Outcome::absent;
  EXPECT_THAT(check_against_log(story.history, story.log), Not(IsEmpty()));
}

TEST(History, IsReadBackAsItWasWritten) {
  for (const Operation& operation : good_story().history)
    EXPECT_EQ(operation_of(to_line(operation)), operation);
  EXPECT_EQ(operation_of("1 2 3"), std::nullopt);
  EXPECT_EQ(lsn_of("6743b0aa-1f"), 31u);
  EXPECT_EQ(lsn_of("6743b0aa-20-9d0c51f3a7e2b884"), 32u);
}

TEST(Log, IsReadFromTheLinesOfDump) {
  const Entry created =
      entry_of(R"({"lsn":2,"epoch":7,"type":"TaskCreated","id":"7-2","queue":"q","key":"k.1"})");
  EXPECT_EQ(created.task, 2u);
  EXPECT_EQ(created.key, "k.1");
  const Entry granted =
      entry_of(R"({"lsn":12,"type":"LeaseGranted","task":4,"worker":"w-1","attempt":2,"expiry":17947})");
  EXPECT_EQ(granted.lease, 12u);
  EXPECT_EQ(granted.task, 4u);
  EXPECT_EQ(granted.worker, "w-1");
  EXPECT_EQ(granted.attempt, 2u);
}

}  // namespace
}  // namespace baton::chaos
