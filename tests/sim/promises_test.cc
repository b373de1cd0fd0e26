// Answers that should never have been given.
#include "tests/sim/promises.h"

#include <gtest/gtest.h>

#include "tests/sim/violation.h"
#include "tests/sim/witness.h"

namespace baton::sim {
namespace {

using namespace core;

constexpr Instant kStart{1000};
constexpr TaskId kTask{1, 2};
constexpr LeaseId kLease{1, 3, 42};

// Entry 2 is a task, entry 3 its lease until kStart + 100.
class Promised : public testing::Test {
 protected:
  Promised() {
    record(EpochStarted{});
    record(TaskCreated{.ns = "n", .queue = "q"});
    record(LeaseGranted{.task = 2, .attempt = 1, .expiry = kStart + milliseconds(100), .worker = "w"});
  }
  void record(const Event& event) {
    history_.entry(event, {.lsn = history_.last() + 1, .epoch = 1, .time = kStart});
  }
  std::string broken_by(const Request& request, Result<Reply> reply) {
    return broken_by(request, reply, history_.last());
  }
  std::string broken_by(const Request& request, Result<Reply> reply, Lsn lsn) {
    try {
      promises_.leave(request, {.lsn = lsn, .reply = std::move(reply)}, kStart, history_.last(), history_);
    } catch (const Violation& violation) {
      return violation.id;
    }
    return "none";
  }
  static CompleteTask complete(std::string_view result = "r") {
    return {.ns = "n", .task = kTask, .lease = kLease, .result = Blob(result)};
  }

  History history_;
  Promises promises_;
};

TEST_F(Promised, I4NoticesAnAnswerThatIsNotDurable) {
  EXPECT_EQ(broken_by(PauseQueue{}, Reply{Accepted{}}, history_.last() + 1), "I4");
}

TEST_F(Promised, I17NoticesAnAnswerThatChanges) {
  record(TaskCompleted{.task = 2, .lease = 3});
  EXPECT_EQ(broken_by(complete(), Reply{Committed{.outcome = Ended::completed}}), "none");
  EXPECT_EQ(broken_by(complete(), Reply{Committed{.outcome = Ended::completed}}), "none");
  EXPECT_EQ(broken_by(complete("other"), failure(Errc::conflict, "")), "none");
  EXPECT_EQ(broken_by(complete(), failure(Errc::conflict, "")), "I17");
}

TEST_F(Promised, I18NoticesAnAnswerTheLogKnowsNothingOf) {
  EXPECT_EQ(broken_by(complete(), Reply{Committed{.outcome = Ended::completed}}), "I18");
  EXPECT_EQ(broken_by(complete(), Reply{Cancelled{}}), "I18");
  EXPECT_EQ(broken_by(SubmitTask{.ns = "n", .queue = "q"}, Reply{Submitted{.task = {1, 9}}}), "I18");
  EXPECT_EQ(broken_by(SubmitTask{.ns = "n", .queue = "other"}, Reply{Submitted{.task = kTask}}), "I18");
  EXPECT_EQ(broken_by(SubmitTask{.ns = "n", .queue = "q"}, Reply{Submitted{.task = kTask}}), "none");
  EXPECT_EQ(broken_by(LeaseTask{.worker = "other"}, Reply{Granted{.task = kTask, .lease = kLease}}), "I18");
}

TEST_F(Promised, I19NoticesAnExpiryTheLogDoesNotHave) {
  const ExtendLease request{.ns = "n", .task = kTask, .lease = kLease};
  EXPECT_EQ(broken_by(request, Reply{Extended{milliseconds(100)}}), "none");
  EXPECT_EQ(broken_by(request, Reply{Extended{milliseconds(101)}}), "I19");
  const Granted granted{.task = kTask, .lease = kLease, .ttl = milliseconds(101)};
  EXPECT_EQ(broken_by(LeaseTask{.worker = "w"}, Reply{granted}), "I19");
}

TEST_F(Promised, I13NoticesALostLeaseThatIsExtended) {
  const ExtendLease request{.ns = "n", .task = kTask, .lease = kLease};
  EXPECT_EQ(broken_by(request, failure(Errc::lease_lost, "")), "none");
  EXPECT_EQ(broken_by(request, Reply{Extended{milliseconds(1)}}), "I13");
}

TEST_F(Promised, I20NoticesATokenThatDoesNotGrow) {
  const Granted granted{.task = kTask, .lease = kLease, .ttl = milliseconds(100)};
  EXPECT_EQ(broken_by(LeaseTask{.worker = "w"}, Reply{granted}), "none");
  EXPECT_EQ(broken_by(LeaseTask{.worker = "w"}, Reply{granted}), "I20");
}

// What recovery may find: a prefix that holds all that was told, in the very state there was.
TaskCreated created(std::string_view queue) {
  return {.ns = "n", .queue = queue, .eligible_at = kStart, .max_attempts = kDefaultMaxAttempts};
}

class Recovering : public testing::Test {
 protected:
  Recovering() {
    record(EpochStarted{});
    record(created("q"));
  }
  void record(const Event& event) {
    const Stamp stamp{.lsn = state_.last + 1, .epoch = 1, .time = kStart};
    const Request submit = SubmitTask{.ns = "n", .queue = "q"};
    witness_.deciding(&submit, &workers_);
    apply(state_, event, stamp);
    witness_.entry(event, stamp, state_, rules_);
  }
  std::string broken_by(const State& state, Lsn acknowledged) {
    try {
      witness_.recovered(state, acknowledged, false);
    } catch (const Violation& violation) {
      return violation.id;
    }
    return "none";
  }

  State state_;
  WorkerRegistry workers_;
  Rules rules_;
  Witness witness_;
};

TEST_F(Recovering, I2NoticesTheLossOfWhatWasAcknowledged) {
  State shorter;
  apply(shorter, EpochStarted{}, {.lsn = 1, .epoch = 1, .time = kStart});
  EXPECT_EQ(broken_by(shorter, 2), "I2");
}

TEST_F(Recovering, MayLoseWhatNobodyWasTold) {
  State shorter;
  apply(shorter, EpochStarted{}, {.lsn = 1, .epoch = 1, .time = kStart});
  EXPECT_EQ(broken_by(shorter, 1), "none");
  EXPECT_EQ(witness_.ledger().last(), 1);
}

TEST_F(Recovering, I3NoticesAnEntryNobodyMade) {
  apply(state_, Sealed{}, {.lsn = 3, .epoch = 1, .time = kStart});
  EXPECT_EQ(broken_by(state_, 2), "I3");
}

TEST_F(Recovering, I5NoticesAnotherState) {
  State other;
  apply(other, EpochStarted{}, {.lsn = 1, .epoch = 1, .time = kStart});
  apply(other, created("another"), {.lsn = 2, .epoch = 1, .time = kStart});
  EXPECT_EQ(broken_by(other, 2), "I5");
}

}  // namespace
}  // namespace baton::sim
