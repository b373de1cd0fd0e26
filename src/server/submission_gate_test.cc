#include "server/submission_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing.h"
#include "server/http_session.h"
#include "tests/backstage.h"

namespace baton::server {
namespace {

using core::kStart;
using testing::HasSubstr;
using testing::StartsWith;

constexpr ServerLimits kSlow{.namespace_bytes_per_second_max = 1000, .namespace_bytes_burst = 2000};

core::SubmitTask task_of(std::size_t bytes, std::string ns = "n") {
  return {.ns = std::move(ns), .queue = "q", .payload = core::Blob(std::string(bytes, 'x'))};
}

// X5
TEST(SubmissionGate, LetsANamespaceWriteAsFastAsItMay) {
  const core::State state;
  SubmissionGate gate(kSlow);
  EXPECT_FALSE(gate.refuse(task_of(2000 - 128), state, kStart)) << "the burst";
  const auto refusal = gate.refuse(task_of(1), state, kStart);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, Errc::exhausted);
  const Instant then = kStart + refusal->retry_after;
  EXPECT_TRUE(gate.refuse(task_of(1), state, core::just_before(then)));
  EXPECT_FALSE(gate.refuse(task_of(1000 - 128), state, then)) << "it said when to come again";
  EXPECT_TRUE(gate.refuse(task_of(1), state, then + milliseconds(900)));
  EXPECT_FALSE(gate.refuse(task_of(1), state, then + seconds(1)));
}

TEST(SubmissionGate, ChargesEachNamespaceForItself) {
  const core::State state;
  SubmissionGate gate(kSlow);
  EXPECT_FALSE(gate.refuse(task_of(5000), state, kStart)) << "larger than the burst, and let in once";
  EXPECT_TRUE(gate.refuse(task_of(0), state, kStart));
  EXPECT_FALSE(gate.refuse(task_of(0, "other"), state, kStart));
}

// X5: completions before submissions.
TEST(SubmissionGate, LetsEverythingElsePassAndChargesResults) {
  const core::State state;
  SubmissionGate gate(kSlow);
  for (int times = 0; times < 3; ++times)
    EXPECT_FALSE(gate.refuse(core::CompleteTask{.ns = "n", .result = core::Blob(std::string(5000, 'x'))},
                             state, kStart));
  EXPECT_FALSE(gate.refuse(core::LeaseTask{.ns = "n"}, state, kStart));
  EXPECT_TRUE(gate.refuse(task_of(0), state, kStart));
}

// X3
TEST(SubmissionGate, KeepsNoMoreNamespacesInMindThanItMay) {
  const core::State state;
  SubmissionGate gate(kSlow);
  for (std::size_t i = 0; i <= SubmissionGate::kBucketsMax; ++i)
    EXPECT_FALSE(gate.refuse(task_of(0, std::to_string(i)), state, kStart));
}

// X5
TEST(SubmissionGate, RefusesGrowthOverTheMemoryLimitUntilTasksHaveGone) {
  core::Authority authority;
  authority.submit(core::a_task(), kStart);
  const core::TaskId second = authority.submit(core::a_task(), kStart);
  SubmissionGate gate({.memory_bytes_max = 1});
  EXPECT_FALSE(gate.refuse(task_of(1), authority.state(), kStart)) << "it has not looked yet";
  gate.look(kStart);
  const auto refusal = gate.refuse(task_of(1), authority.state(), kStart);
  ASSERT_TRUE(refusal);
  EXPECT_GT(refusal->retry_after, Duration{});
  EXPECT_TRUE(gate.refuse(core::RequeueTask{.ns = "n", .task = second}, authority.state(), kStart));
  EXPECT_FALSE(gate.refuse(core::CompleteTask{.ns = "n"}, authority.state(), kStart));
  authority.ask(core::cancel(second), kStart);
  authority.ask(core::PurgeQueue{.ns = "n", .queue = "q"}, kStart);
  EXPECT_FALSE(gate.refuse(task_of(1), authority.state(), kStart))
      << "there is room for one in what is there";
}

// X2, X5: whoever did not hear the answer learns what became of it
TEST(SubmissionGate, LetsWhatIsRepeatedUnderItsKeyPass) {
  core::Authority authority;
  const core::TaskId task = authority.submit(core::a_task("k"), kStart);
  const core::State& state = authority.state();
  const auto keyed = [](const char* key) { return core::a_task(key); };
  SubmissionGate full({.memory_bytes_max = 1});
  full.look(kStart);
  EXPECT_TRUE(full.refuse(keyed("other"), state, kStart));
  EXPECT_FALSE(full.refuse(keyed("k"), state, kStart));
  core::RequeueTask again{.ns = "n", .task = task, .key = "other"};
  EXPECT_TRUE(full.refuse(again, state, kStart));
  again.key = "k";
  EXPECT_FALSE(full.refuse(again, state, kStart));

  SubmissionGate slow(kSlow);
  EXPECT_FALSE(slow.refuse(task_of(5000), state, kStart));
  EXPECT_TRUE(slow.refuse(keyed("other"), state, kStart));
  EXPECT_FALSE(slow.refuse(keyed("k"), state, kStart));
}

core::ProcessWork messages_of(std::size_t bytes, std::size_t count = 1) {
  core::ProcessWork work{.ns = "n"};
  work.messages.inbox.resize(count, {.body = core::Blob(std::string(bytes, 'x'))});
  return work;
}

// X5: they are what a namespace writes, as tasks are.
TEST(SubmissionGate, LetsNewMessagesInAsFastAsTheNamespaceMayWrite) {
  const core::State state;
  SubmissionGate gate(kSlow);
  EXPECT_FALSE(gate.refuse(messages_of(1000 - 128, 2), state, kStart)) << "the burst";
  EXPECT_TRUE(gate.refuse(messages_of(1), state, kStart));
  EXPECT_TRUE(gate.refuse(task_of(1), state, kStart));
  core::ProcessWork report{.ns = "n", .claim = stream::ClaimRequest{}};
  report.failures.outbox.resize(1, {.error = core::Blob(std::string(2000 - 128, 'x'))});
  EXPECT_FALSE(gate.refuse(report, state, kStart)) << "without a new message it goes on, and is charged";
  EXPECT_TRUE(gate.refuse(messages_of(1), state, kStart + seconds(2)));
  EXPECT_FALSE(gate.refuse(messages_of(1), state, kStart + seconds(2) + milliseconds(1)));
}

// X5
TEST(SubmissionGate, RefusesNewMessagesOverTheMemoryLimit) {
  const core::State state;
  SubmissionGate gate({.memory_bytes_max = 1});
  gate.look(kStart);
  const auto refusal = gate.refuse(messages_of(1), state, kStart);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, Errc::exhausted);
  EXPECT_GT(refusal->retry_after, Duration{});
  EXPECT_FALSE(gate.refuse(core::ProcessWork{.ns = "n", .claim = stream::ClaimRequest{}}, state, kStart));
}

// X5
TEST(SubmissionGate, TellsClientsWhenToComeAgain) {
  Backstage stage({}, {.namespace_bytes_per_second_max = 1000, .namespace_bytes_burst = 1000});
  Client client(stage);
  const std::string task = member(client.ask({"SUBMIT", "q", std::string(2000, 'x')}), "task");
  EXPECT_THAT(client.ask({"SUBMIT", "q", "y"}),
              testing::ContainsRegex("^-EXHAUSTED the namespace writes faster than it may, which is [0-9]+ "
                                     "bytes per second; retry_after_ms=[1-9]"));
  EXPECT_THAT(client.ask({"SUBMITMANY", "q", "2", "y", "z"}), StartsWith("*2 -EXHAUSTED "));
  const Pages no_pages = [](std::string_view, const PrincipalRef&) { return std::optional<Page>(); };
  HttpSession browser(stage.desk(), stage.access, {}, no_pages, [] {});
  browser.receive(
      "POST /v1/submit HTTP/1.1\r\nContent-Length: 27\r\n\r\n{\"queue\":\"q\",\"payload\":\"x\"}");
  EXPECT_THAT(browser.output(), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(browser.output(), HasSubstr("Retry-After: 2\r\n"));
  EXPECT_THAT(browser.output(), HasSubstr("\"retry_after_ms\":1"));
  const std::string leased = client.ask({"LEASE", "w", "q"});
  EXPECT_EQ(member(client.ask({"COMPLETE", task, member(leased, "lease")}), "status"), "COMMITTED");
}

// X5
TEST(Limits, OfANamespaceAreToldWithAHint) {
  CoordinatorOptions options;
  options.engine.rules.each_namespace.tasks_max = 1;
  Backstage stage(options);
  Client client(stage);
  client.ask({"SUBMIT", "q", "x"});
  EXPECT_EQ(client.ask({"SUBMIT", "q", "x"}),
            "-EXHAUSTED the namespace holds as many tasks as it may: 1; retry_after_ms=1000 ");
  client.ask({"USE", "other"});
  EXPECT_THAT(client.ask({"SUBMIT", "q", "x"}), HasSubstr("task"));
}

// X3
TEST(Limits, HoldForCommandsUnderWayOnAConnection) {
  Backstage stage({}, {.under_way_max = 2});
  Client client(stage);
  client.send({"SUBMIT", "q", "x"});
  EXPECT_TRUE(client.session.wants_more());
  client.send({"SUBMIT", "q", "x"});
  EXPECT_FALSE(client.session.wants_more());
  client.hear();
  EXPECT_TRUE(client.session.wants_more());
}

// X3
TEST(Limits, CountAReplyThatMayBeLongForMany) {
  Backstage stage({}, {.under_way_max = 100});
  Client client(stage);
  client.send({"GET", "1-1"});
  EXPECT_TRUE(client.session.wants_more());
  client.send({"GET", "1-1"});
  EXPECT_FALSE(client.session.wants_more());
  client.hear();
  client.send({"QUEUES"});
  EXPECT_FALSE(client.session.wants_more());
  client.hear();
  EXPECT_TRUE(client.session.wants_more());
}

// X3
TEST(Limits, LetNobodyGetFarAheadOfItsReaderWhenMuchIsUnread) {
  Backstage stage({}, {.unsent_bytes_max = 1000});
  Client client(stage);
  while (client.session.output().size() < (16 << 10)) client.send({"COMMAND", "DOCS"});
  EXPECT_TRUE(client.session.wants_more());
  stage.desk().counters.unsent_bytes = 1000;
  EXPECT_FALSE(client.session.wants_more());
  client.hear();
  EXPECT_TRUE(client.session.wants_more());
}

// X5: otherwise each of thousands of connections could have a reply of megabytes that it does not read.
TEST(Limits, LeaveNothingLargeToBeAskedWhileTooMuchIsUnread) {
  Backstage stage({}, {.unsent_bytes_max = 1000});
  Client client(stage);
  client.ask({"SUBMIT", "q", "x", "KEY", "k"});
  stage.desk().counters.unsent_bytes = 3999;
  EXPECT_THAT(client.ask({"GET", "key:k"}), HasSubstr("payload $1 x "));
  stage.desk().counters.unsent_bytes = 4000;
  for (const std::vector<std::string>& large : {std::vector<std::string>{"GET", "key:k"}, {"TASKS"}})
    EXPECT_THAT(client.ask(large), AllOf(StartsWith("-EXHAUSTED "), HasSubstr("; retry_after_ms=1000 ")));
  EXPECT_THAT(client.ask({"HEARTBEAT", "w"}), HasSubstr("leases :0 "));
  EXPECT_THAT(client.ask({"LEASE", "w", "q"}), HasSubstr("payload $1 x ")) << "work goes on";
  stage.desk().counters.unsent_bytes = 0;
  EXPECT_THAT(client.ask({"GET", "key:k"}), HasSubstr("payload $1 x "));
}

// X5: a command of a few letters for each may name what is known of a verb thousands of times.
TEST(Limits, LeaveNothingLongToBeSaidAgainWhileTooMuchIsUnread) {
  Backstage stage({}, {.unsent_bytes_max = 1000});
  Client client(stage);
  const std::string large(Desk::kSmall, 'x');
  std::vector<std::string> docs = {"COMMAND", "DOCS"};
  docs.resize(100, "submit");
  stage.desk().counters.unsent_bytes = 3999;
  EXPECT_THAT(client.ask({"ECHO", large}), HasSubstr(large));
  stage.desk().counters.unsent_bytes = 4000;
  for (const std::vector<std::string>& said :
       {std::vector<std::string>{"ECHO", large}, {"PING", large}, docs})
    EXPECT_THAT(client.ask(said).substr(0, 100),
                AllOf(StartsWith("-EXHAUSTED "), HasSubstr("; retry_after_ms=1000 ")));
  EXPECT_EQ(client.ask({"PING", "x"}), "$1 x ");
}

// X5: tasks may come again and again to whoever does not read that he was given them.
TEST(Limits, HandOutOneTaskAtATimeWhileTooMuchIsUnread) {
  Backstage stage({}, {.unsent_bytes_max = 1000});
  Client client(stage);
  client.ask({"SUBMITMANY", "q", "4", "x", "x", "x", "x"});
  stage.desk().counters.unsent_bytes = 4000;
  EXPECT_THAT(client.ask({"LEASE", "w", "q", "COUNT", "3"}), HasSubstr("tasks *1 "));
  stage.desk().counters.unsent_bytes = 0;
  EXPECT_THAT(client.ask({"LEASE", "w", "q", "COUNT", "3"}), HasSubstr("tasks *3 "));
}

// X5: each grant looks at all of them, so a thousand would keep everybody waiting for seconds.
TEST(Limits, LetALeaseThatLooksAtManyLanesTakeFewerTasks) {
  Backstage stage;
  Client client(stage);
  constexpr int kOtherLanes = 630;
  for (int lane = 0; lane < kOtherLanes; ++lane)
    client.send({"SUBMIT", "q", "x", "PRIORITY", std::to_string(lane % 10), "CAPABILITY",
                 "c" + std::to_string(lane / 10)});
  client.hear();
  std::vector<std::string> many = {"SUBMITMANY", "q", "300"};
  many.resize(3 + 300, "x");
  client.ask(many);
  client.ask({"SUBMITMANY", "other", "3", "x", "x", "x"});
  EXPECT_THAT(client.ask({"LEASE", "w", "q", "COUNT", "300"}),
              HasSubstr("tasks *" + std::to_string(100'000 / (kOtherLanes + 1)) + " "));
  EXPECT_THAT(client.ask({"LEASE", "w", "other", "COUNT", "300"}), HasSubstr("tasks *3 "));
}

// X3
TEST(Limits, HoldForRepliesNotYetRead) {
  Backstage stage({}, {.output_bytes_max = 14});
  Client client(stage);
  client.send({"PING"});
  EXPECT_TRUE(client.session.wants_more());
  client.send({"PING"});
  EXPECT_FALSE(client.session.wants_more());
}

// X3
TEST(Limits, HoldForTheConnectionsOfAPrincipal) {
  const NewToken ci = make_token();
  Backstage stage({}, {.connections_per_principal_max = 2});
  stage.access = Access::read("ci " + ci.hash + " default=submit").value();
  Client first(stage);
  Client third(stage);
  {
    Client second(stage);
    EXPECT_EQ(first.ask({"AUTH", ci.token}), "+OK ");
    EXPECT_EQ(first.ask({"AUTH", ci.token}), "+OK ") << "the same once more is not another";
    EXPECT_EQ(second.ask({"AUTH", ci.token}), "+OK ");
    EXPECT_THAT(third.ask({"AUTH", ci.token}), StartsWith("-EXHAUSTED 'ci' has too many connections"));
    EXPECT_THAT(third.ask({"SUBMIT", "q", "x"}), StartsWith("-NOAUTH "));
  }
  EXPECT_EQ(third.ask({"AUTH", ci.token}), "+OK ");
}

TEST(Crowd, CountsWhoIsThere) {
  Crowd crowd;
  auto first = crowd.enter("a", 1);
  EXPECT_TRUE(first);
  EXPECT_FALSE(crowd.enter("a", 1));
  EXPECT_TRUE(crowd.enter("b", 1));
  first.reset();
  EXPECT_TRUE(crowd.enter("a", 1));
  EXPECT_FALSE(crowd.enter("a", 0));
}

}  // namespace
}  // namespace baton::server
