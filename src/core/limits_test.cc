// Every limit: what lies at it is taken, what lies one past it is refused and changes nothing.
#include "core/limits.h"

#include "core/testing.h"

namespace baton::core {
namespace {

std::optional<Errc> refusal(const Request& request, Rules rules = {}) {
  Authority authority(rules);
  const std::uint64_t digest = authority.state().digest;
  const Answer answer = authority.ask(request, kStart);
  if (answer.refusal) {
    EXPECT_EQ(authority.state().digest, digest);
    EXPECT_EQ(authority.log().size(), 1u);
  }
  return answer.refusal;
}

std::optional<Errc> submitting(auto change, Rules rules = {}) {
  SubmitTask task = a_task();
  change(task);
  return refusal(task, rules);
}

std::optional<Errc> leasing(auto change) {
  LeaseTask lease = a_worker();
  change(lease);
  return refusal(lease);
}

const std::string kLongest(kNameBytesMax, 'x');
const std::string kTooLong(kNameBytesMax + 1, 'x');

// X3
TEST(Limits, HoldForNames) {
  for (std::string SubmitTask::* field : {&SubmitTask::ns, &SubmitTask::queue, &SubmitTask::key}) {
    EXPECT_EQ(submitting([&](SubmitTask& task) { task.*field = kLongest; }), std::nullopt);
    EXPECT_EQ(submitting([&](SubmitTask& task) { task.*field = kTooLong; }), Errc::invalid_request);
    EXPECT_EQ(submitting([&](SubmitTask& task) { task.*field = "a b"; }), Errc::invalid_request);
  }
  EXPECT_EQ(submitting([](SubmitTask& task) { task.ns = ""; }), Errc::invalid_request);
  EXPECT_EQ(submitting([](SubmitTask& task) { task.queue = ""; }), Errc::invalid_request);
  for (std::string LeaseTask::* field : {&LeaseTask::ns, &LeaseTask::worker}) {
    EXPECT_EQ(leasing([&](LeaseTask& lease) { lease.*field = kLongest; }), std::nullopt);
    EXPECT_EQ(leasing([&](LeaseTask& lease) { lease.*field = kTooLong; }), Errc::invalid_request);
    EXPECT_EQ(leasing([&](LeaseTask& lease) { lease.*field = ""; }), Errc::invalid_request);
  }
  EXPECT_EQ(leasing([](LeaseTask& lease) { lease.queues = {kLongest}; }), std::nullopt);
  EXPECT_EQ(leasing([](LeaseTask& lease) { lease.queues = {"q", kTooLong}; }), Errc::invalid_request);
  EXPECT_EQ(refusal(PauseQueue{"n", kTooLong}), Errc::invalid_request);
  EXPECT_EQ(refusal(ResumeQueue{kTooLong, "q"}), Errc::invalid_request);
  EXPECT_EQ(refusal(PurgeQueue{.ns = "n", .queue = ""}), Errc::invalid_request);
  EXPECT_EQ(refusal(RequeueTask{.ns = "n", .key = kTooLong}), Errc::invalid_request);
  EXPECT_EQ(refusal(CancelTask{.ns = "n", .actor = kTooLong}), Errc::invalid_request);
  EXPECT_EQ(refusal(CancelTask{.ns = "n", .actor = kLongest}), Errc::not_found);
  // A name that can name nothing finds nothing.
  EXPECT_EQ(refusal(CancelTask{.ns = kTooLong, .task = TaskRef::by_key(kTooLong)}), Errc::not_found);
}

// X3: bad input is refused before anything else is looked at.
TEST(Limits, ComeBeforeCapacity) {
  Authority authority;
  authority.submit(a_task(), kStart);
  authority.workers.heartbeat("n", "w", 1, {}, kStart);
  authority.grant(a_worker(), kStart);
  LeaseTask request = a_worker();
  EXPECT_TRUE(authority.ask(request, kStart).is<Nothing>());
  request.queues = {"not a name"};
  EXPECT_EQ(authority.ask(request, kStart).refusal, Errc::invalid_request);
}

// X3, D29
TEST(Limits, HoldForBytes) {
  const Rules rules{.payload_bytes_max = 100};
  const Blob fits(std::string(100, 'x')), over(std::string(101, 'x'));
  EXPECT_EQ(submitting([&](SubmitTask& task) { task.payload = fits; }, rules), std::nullopt);
  EXPECT_EQ(submitting([&](SubmitTask& task) { task.payload = over; }, rules), Errc::too_large);
  EXPECT_EQ(refusal(CompleteTask{.ns = "n", .result = fits}, rules), Errc::not_found);
  EXPECT_EQ(refusal(CompleteTask{.ns = "n", .result = over}, rules), Errc::too_large);

  const Rules generous{.payload_bytes_max = SIZE_MAX};  // the format has a say as well
  const Blob hard(std::string(kPayloadBytesHardMax, 'x')), harder(std::string(kPayloadBytesHardMax + 1, 'x'));
  EXPECT_EQ(submitting([&](SubmitTask& task) { task.payload = hard; }, generous), std::nullopt);
  EXPECT_EQ(submitting([&](SubmitTask& task) { task.payload = harder; }, generous), Errc::too_large);
  EXPECT_EQ(refusal(CompleteTask{.ns = "n", .result = harder}, generous), Errc::too_large);

  const Blob reason(std::string(kReasonBytesMax, 'x')), longer(std::string(kReasonBytesMax + 1, 'x'));
  EXPECT_EQ(refusal(FailTask{.ns = "n", .reason = reason}), Errc::not_found);
  EXPECT_EQ(refusal(FailTask{.ns = "n", .reason = longer}), Errc::too_large);
  EXPECT_EQ(refusal(CancelTask{.ns = "n", .note = reason}), Errc::not_found);
  EXPECT_EQ(refusal(CancelTask{.ns = "n", .note = longer}), Errc::too_large);
}

// X3
TEST(Limits, HoldForTimes) {
  const auto delay = [](Duration value) { return submitting([&](SubmitTask& task) { task.delay = value; }); };
  EXPECT_EQ(delay(kDelayMax), std::nullopt);
  EXPECT_EQ(delay(just_over(kDelayMax)), Errc::invalid_request);
  EXPECT_EQ(delay(milliseconds(-1)), Errc::invalid_request);
  const auto hold = [](Duration value) {
    return submitting([&](SubmitTask& task) { task.max_hold = value; });
  };
  EXPECT_EQ(hold(kHoldMax), std::nullopt);
  EXPECT_EQ(hold(just_over(kHoldMax)), Errc::invalid_request);
  EXPECT_EQ(hold(milliseconds(-1)), Errc::invalid_request);
  const auto ttl = [](Duration value) { return leasing([&](LeaseTask& lease) { lease.ttl = value; }); };
  EXPECT_EQ(ttl(kTtlMin), std::nullopt);
  EXPECT_EQ(ttl(milliseconds(0)), Errc::invalid_request);
  EXPECT_EQ(ttl(kTtlMax), std::nullopt);
  EXPECT_EQ(ttl(just_over(kTtlMax)), Errc::invalid_request);
  EXPECT_EQ(refusal(ExtendLease{.ns = "n", .ttl = kTtlMax}), Errc::not_found);
  EXPECT_EQ(refusal(ExtendLease{.ns = "n", .ttl = just_over(kTtlMax)}), Errc::invalid_request);
  EXPECT_EQ(refusal(ExtendLease{.ns = "n", .ttl = milliseconds(0)}), Errc::invalid_request);
  EXPECT_EQ(refusal(FailTask{.ns = "n", .delay = kDelayMax}), Errc::not_found);
  EXPECT_EQ(refusal(FailTask{.ns = "n", .delay = just_over(kDelayMax)}), Errc::invalid_request);
  EXPECT_EQ(refusal(FailTask{.ns = "n", .delay = milliseconds(-1)}), Errc::invalid_request);
  EXPECT_EQ(refusal(ReleaseTask{.ns = "n", .delay = kDelayMax}), Errc::not_found);
  EXPECT_EQ(refusal(ReleaseTask{.ns = "n", .delay = just_over(kDelayMax)}), Errc::invalid_request);
  EXPECT_EQ(refusal(ReleaseTask{.ns = "n", .delay = milliseconds(-1)}), Errc::invalid_request);
}

// X3, D13
TEST(Limits, HoldForPolicies) {
  const auto policy = [](auto change) { return submitting([&](SubmitTask& task) { change(task.retry); }); };
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.max_failures = kFailuresMax; }), std::nullopt);
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.max_failures = kFailuresMax + 1; }), Errc::invalid_request);
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.max_failures = 0; }), Errc::invalid_request);
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.base = retry.max = kDelayMax; }), std::nullopt);
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.max = just_over(kDelayMax); }), Errc::invalid_request);
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.base = just_over(retry.max); }), Errc::invalid_request);
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.base = milliseconds(-1); }), Errc::invalid_request);
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.factor_percent = 100; }), std::nullopt);
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.factor_percent = 99; }), Errc::invalid_request);
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.factor_percent = kFactorPercentMax; }), std::nullopt);
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.factor_percent = kFactorPercentMax + 1; }),
            Errc::invalid_request);
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.jitter_percent = 100; }), std::nullopt);
  EXPECT_EQ(policy([](RetryPolicy& retry) { retry.jitter_percent = 101; }), Errc::invalid_request);
  const auto attempts = [](std::uint32_t value) {
    return submitting([&](SubmitTask& task) { task.max_attempts = value; });
  };
  EXPECT_EQ(attempts(kAttemptsMax), std::nullopt);
  EXPECT_EQ(attempts(kAttemptsMax + 1), Errc::invalid_request);
  EXPECT_EQ(attempts(0), Errc::invalid_request);
  EXPECT_EQ(submitting([](SubmitTask& task) { task.priority = kPriorityMax; }), std::nullopt);
  EXPECT_EQ(submitting([](SubmitTask& task) { task.priority = kPriorityMax + 1; }), Errc::invalid_request);
}

// X3
TEST(Limits, HoldForNumbersInOneRequest) {
  EXPECT_EQ(leasing([](LeaseTask& lease) { lease.queues.assign(kQueuesPerLeaseMax, "q"); }), std::nullopt);
  EXPECT_EQ(leasing([](LeaseTask& lease) { lease.queues.assign(kQueuesPerLeaseMax + 1, "q"); }),
            Errc::too_large);
  EXPECT_EQ(leasing([](LeaseTask& lease) { lease.queues.clear(); }), Errc::invalid_request);
  ExtendLeases many{.ns = "n"};
  for (Lsn lsn = 0; lsn < kExtendItemsMax; ++lsn) many.items.push_back({.lease = {kEpoch, lsn, 0}});
  EXPECT_EQ(refusal(many), std::nullopt);
  many.items.push_back({.lease = {kEpoch, kExtendItemsMax, 0}});
  EXPECT_EQ(refusal(many), Errc::too_large);
}

// X3
TEST(Limits, HoldForTasks) {
  Authority authority({.tasks_max = 2});
  const TaskId first = authority.submit(a_task(), kStart);
  authority.submit(a_task("k"), kStart);
  EXPECT_EQ(authority.ask(a_task(), kStart).refusal, Errc::exhausted);
  EXPECT_TRUE(authority.ask(a_task("k"), kStart).as<Submitted>().existed);  // needs no room
  authority.ask(cancel(first), kStart);
  EXPECT_EQ(authority.ask(RequeueTask{.ns = "n", .task = first}, kStart).refusal, Errc::exhausted);
  authority.ask(PurgeQueue{.ns = "n", .queue = "q"}, kStart);
  EXPECT_EQ(authority.ask(a_task(), kStart).refusal, std::nullopt);
}

// X3: what one namespace holds is no reason to refuse another.
TEST(Limits, HoldForTheTasksOfANamespace) {
  Authority authority({.each_namespace = {.tasks_max = 2}});
  const TaskId first = authority.submit(a_task(), kStart);
  authority.submit(a_task(), kStart);
  EXPECT_EQ(authority.ask(a_task(), kStart).refusal, Errc::exhausted);
  SubmitTask elsewhere = a_task();
  elsewhere.ns = "m";
  EXPECT_EQ(authority.ask(elsewhere, kStart).refusal, std::nullopt);
  authority.ask(cancel(first), kStart);
  EXPECT_EQ(authority.ask(RequeueTask{.ns = "n", .task = first}, kStart).refusal, Errc::exhausted);
  authority.ask(PurgeQueue{.ns = "n", .queue = "q"}, kStart);
  EXPECT_EQ(authority.ask(a_task(), kStart).refusal, std::nullopt);
}

// X3
TEST(Limits, HoldForTheQueuesOfANamespace) {
  Authority authority({.each_namespace = {.queues_max = 2}});
  authority.submit(a_task(), kStart);
  authority.ask(PauseQueue{"n", "paused"}, kStart);
  EXPECT_EQ(authority.ask(PauseQueue{"n", "one-more"}, kStart).refusal, Errc::exhausted);
  SubmitTask task = a_task();
  task.queue = "one-more";
  EXPECT_EQ(authority.ask(task, kStart).refusal, Errc::exhausted);
  EXPECT_EQ(authority.ask(a_task(), kStart).refusal, std::nullopt);
  EXPECT_EQ(authority.ask(PauseQueue{"m", "one-more"}, kStart).refusal, std::nullopt);
  authority.ask(ResumeQueue{"n", "paused"}, kStart);
  EXPECT_EQ(authority.ask(task, kStart).refusal, std::nullopt);
}

// X3
TEST(Limits, HoldForThePayloadsOfANamespace) {
  Authority authority({.each_namespace = {.payload_bytes_max = 2 * std::string_view("payload").size()}});
  const TaskId task = authority.submit(a_task(), kStart);
  authority.submit(a_task(), kStart);
  SubmitTask one_byte = a_task();
  one_byte.payload = Blob("x");
  EXPECT_EQ(authority.ask(one_byte, kStart).refusal, Errc::exhausted);
  SubmitTask empty = a_task();
  empty.payload = {};
  EXPECT_EQ(authority.ask(empty, kStart).refusal, std::nullopt);
  authority.ask(cancel(task), kStart);
  authority.ask(PurgeQueue{.ns = "n", .queue = "q"}, kStart);
  EXPECT_EQ(authority.ask(one_byte, kStart).refusal, std::nullopt);
}

// X3: with the disk nearly full, work goes on and only more of it is refused.
TEST(Limits, StopSubmissionsWhileTheDiskIsNearlyFull) {
  auto [authority, held] = a_leased_task();
  authority.rules.admit_submissions = false;
  EXPECT_EQ(authority.ask(a_task(), kStart).refusal, Errc::exhausted);
  EXPECT_EQ(authority.ask(extend(held), kStart + seconds(20)).refusal, std::nullopt);
  EXPECT_EQ(authority.ask(complete(held), kStart + seconds(20)).refusal, std::nullopt);
}

// X3
TEST(Limits, HoldForLanesOfAQueue) {
  Authority authority;
  for (std::size_t i = 0; i < kLanesPerQueueMax; ++i) {
    SubmitTask task = a_task();
    task.priority = static_cast<std::uint8_t>(i % 10);
    task.requires_capabilities = capabilities({"c" + std::to_string(i / 10)});
    authority.submit(task, kStart);
  }
  EXPECT_EQ(authority.ask(a_task(), kStart).refusal, Errc::exhausted);
  SubmitTask known = a_task();
  known.requires_capabilities = capabilities({"c0"});
  EXPECT_EQ(authority.ask(known, kStart).refusal, std::nullopt);
  SubmitTask elsewhere = a_task();
  elsewhere.queue = "r";
  EXPECT_EQ(authority.ask(elsewhere, kStart).refusal, std::nullopt);
}

SubmitTask in_lane(std::size_t number) {
  SubmitTask task = a_task();
  task.requires_capabilities = capabilities({"c" + std::to_string(number)});
  return task;
}

// X3: as runs have it, each of which has a capability of its own.
TEST(Limits, HoldForLanesOfTasksThatHaveNotEndedAndForThoseOfAll) {
  Authority authority;
  const auto refusal = [&](std::size_t lane) { return authority.ask(in_lane(lane), kStart).refusal; };
  for (std::size_t i = 0; i < kLanesKeptMax; ++i) {
    const TaskId task = authority.submit(in_lane(i), kStart);
    EXPECT_EQ(authority.ask(cancel(task), kStart).refusal, std::nullopt);
  }
  EXPECT_EQ(refusal(kLanesKeptMax), Errc::exhausted);
  for (std::size_t i = 0; i < kLanesPerQueueMax; ++i) EXPECT_EQ(refusal(i), std::nullopt);
  EXPECT_EQ(refusal(kLanesPerQueueMax), Errc::exhausted);
  EXPECT_EQ(refusal(0), std::nullopt);
  const State again = replayed(authority.log());
  EXPECT_EQ(again.queues[find_queue(again, "n", "q")].lanes.size(), kLanesKeptMax);
}

// X3
TEST(Limits, HoldForQueues) {
  Authority authority;
  for (std::size_t i = 0; i < kQueuesMax; ++i) authority.ask(PauseQueue{"n", std::to_string(i)}, kStart);
  EXPECT_EQ(authority.ask(PauseQueue{"n", "one-more"}, kStart).refusal, Errc::exhausted);
  EXPECT_EQ(authority.ask(a_task(), kStart).refusal, Errc::exhausted);
  SubmitTask known = a_task();
  known.queue = "0";
  EXPECT_EQ(authority.ask(known, kStart).refusal, std::nullopt);
}

}  // namespace
}  // namespace baton::core
