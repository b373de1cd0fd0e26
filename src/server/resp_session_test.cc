#include "server/resp_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

#include "tests/backstage.h"
#include "tests/bytes_in_use.h"

namespace baton::server {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

TEST(RespSession, TakesATaskThroughItsLife) {  // T30 T32 T36
  Backstage stage;
  Client client(stage);
  const std::string task = member(client.ask({"SUBMIT", "mail", "hello", "KEY", "k1"}), "task");
  const std::string leased = client.ask({"LEASE", "w1", "mail", "TTL_MS", "20000"});
  EXPECT_EQ(member(leased, "task"), task);
  EXPECT_EQ(member(leased, "payload"), "hello");
  EXPECT_EQ(member(leased, "attempt"), "1");
  const std::string lease = member(leased, "lease");
  EXPECT_EQ(member(client.ask({"EXTEND", task, lease, "TTL_MS", "30000"}), "ttl_ms"), "30000");
  EXPECT_EQ(member(client.ask({"COMPLETE", task, lease, "RESULT", "done"}), "status"), "COMMITTED");
  const std::string seen = client.ask({"GET", "key:k1"});
  EXPECT_EQ(member(seen, "state"), "completed");
  EXPECT_EQ(member(seen, "result"), "done");
  EXPECT_THAT(client.ask({"EXTEND", task, lease}), StartsWith("-LEASE_LOST "));
  EXPECT_EQ(member(client.ask({"LEASE", "w1", "mail"}), "task"), "");
}

// Commands that are decided on the spot, or not, or wait, or ask nothing of the authority.
void send_all_kinds(Client& client) {
  client.send({"SUBMIT", "q", "a"});
  client.send({"PING"});
  client.send({"NONSENSE"});
  client.send({"SUBMIT", "q", "b"});
  client.send({"SUBMIT", "q", "c", "DELAY", "1"});
  client.send({"CANCEL", "key:nobody"});
  client.send({"LEASE", "w", "q", "COUNT", "2"});
  client.send({"SUBMIT", "q", "d"});
  client.send({"PING", "again"});
}

constexpr const char* kAllKinds =
    "existed .*[+]PONG -UNKNOWN_COMMAND .*existed .*-INVALID_REQUEST .*-NOT_FOUND .*payload [$]1 a .*payload "
    "[$]1 b .*existed .*again ";

TEST(RespSession, AnswersInTheOrderOfTheCommands) {
  Backstage stage;
  Client client(stage);
  send_all_kinds(client);
  EXPECT_THAT(client.hear(), ContainsRegex(kAllKinds));
}

TEST(RespSession, AnswersWhatIsDecidedOnTheSpotInOrderAndOnceItIsDurable) {  // T29
  Backstage stage;
  Client client(stage);
  stage.turn([&] {
    send_all_kinds(client);
    EXPECT_EQ(client.session.output(), "");
    EXPECT_GT(client.session.held_bytes(), 0u);
  });
  EXPECT_THAT(client.hear(), ContainsRegex(kAllKinds));
  EXPECT_EQ(client.session.held_bytes(), 0u);
  EXPECT_GE(stage.authority->flushes(), 1u);
}

// X5: many that have once said something long may be quiet for as long as they like.
TEST(RespSession, GivesBackWhatALongCommandNeeded) {
  Backstage stage;
  Client client(stage);
  client.ask({"PING"});
  std::vector<std::string> words{"SUBMITMANY", "q", "4000"};
  words.resize(4003, "x");
  std::string text;
  wire::RespWriter writer(text);
  writer.array(words.size());
  for (const std::string& word : words) writer.bulk(std::string_view(word));
  const std::size_t before = bytes_in_use();
  client.session.receive(std::string_view(text).substr(0, text.size() - 1));
  client.session.give_back_room(4096);
  client.session.receive("\n");
  EXPECT_THAT(client.hear(), StartsWith("-"));
  EXPECT_GT(bytes_in_use(), before + 200'000) << "else this tells nothing";
  client.session.give_back_room(4096);
  EXPECT_LT(bytes_in_use(), before + 16'000);
}

TEST(RespSession, GoesWithRepliesThatWaitForTheDisk) {  // T29
  Backstage stage;
  auto client = std::make_unique<Client>(stage);
  stage.turn([&] {
    client->send({"SUBMIT", "q", "a"});
    client.reset();
  });
  Client other(stage);
  EXPECT_THAT(other.ask({"LEASE", "w", "q"}), HasSubstr("payload $1 a "));
}

TEST(RespSession, SaysNothingBeforeItIsDurable) {  // T29
  Backstage stage;
  Client client(stage);
  client.send({"SUBMIT", "q", "a"});
  EXPECT_EQ(client.session.output(), "");
  client.hear();
  EXPECT_GE(stage.authority->flushes(), 1u);
}

TEST(RespSession, SubmitsAndLeasesMany) {
  Backstage stage;
  Client client(stage);
  EXPECT_THAT(client.ask({"SUBMITMANY", "q", "3", "a", "b", "c", "PRIORITY", "2"}), StartsWith("*3 "));
  const std::string leased = client.ask({"LEASE", "w", "q", "COUNT", "2"});
  EXPECT_THAT(leased, HasSubstr("tasks *2 "));
  EXPECT_THAT(leased, HasSubstr("payload $1 a "));
  EXPECT_THAT(leased, HasSubstr("payload $1 b "));
}

TEST(RespSession, SubmitsManyEachUnderItsKey) {
  Backstage stage;
  Client client(stage);
  const std::string first = client.ask({"SUBMITMANY", "q", "2", "a", "b", "KEY", "k1", "KEY", "k2"});
  EXPECT_EQ(client.ask({"SUBMITMANY", "q", "1", "b", "KEY", "k2"}).find("existed #f"), std::string::npos);
  EXPECT_THAT(client.ask({"GET", "key:k2"}), HasSubstr("payload $1 b "));
  EXPECT_THAT(client.ask({"SUBMITMANY", "q", "2", "a", "other", "KEY", "k1", "KEY", "k2"}),
              HasSubstr("CONFLICT"));
  EXPECT_THAT(client.ask({"SUBMITMANY", "q", "2", "a", "b", "KEY", "k3"}),
              StartsWith("-INVALID_REQUEST give a key for each of the tasks, or none"));
  EXPECT_THAT(client.ask({"SUBMITMANY", "q", "1", "a", "KEY", "no blanks"}),
              StartsWith("-INVALID_REQUEST key must be"));
}

TEST(RespSession, FusedCompleteAndLeaseHaveAnOutcomeEach) {
  Backstage stage;
  Client client(stage);
  client.ask({"SUBMITMANY", "q", "2", "a", "b"});
  const std::string leased = client.ask({"LEASE", "w", "q"});
  const std::string next =
      client.ask({"NEXT", member(leased, "task"), member(leased, "lease"), "w", "q", "RESULT", "r"});
  EXPECT_EQ(member(next, "status"), "COMMITTED");
  EXPECT_EQ(member(next, "payload"), "b");
  const std::string stale = client.ask({"NEXT", member(leased, "task"), "1-2-3", "w", "q", "RESULT", "r"});
  EXPECT_THAT(stale, HasSubstr("-LEASE_UNKNOWN ")) << "the completion is refused";
  EXPECT_THAT(stale, HasSubstr("tasks *0")) << "and the lease is looked for all the same";
}

TEST(RespSession, ABlockedLeaseGetsTheTaskThatComes) {
  Backstage stage;
  Client worker(stage);
  Client submitter(stage);
  worker.send({"LEASE", "w", "q", "WAIT_MS", "60000"});
  worker.send({"PING"});
  submitter.ask({"SUBMIT", "other", "x"});
  EXPECT_EQ(worker.session.output(), "") << "what follows a blocking command waits for it";
  submitter.ask({"SUBMIT", "q", "for you"});
  const std::string heard = worker.hear();
  EXPECT_THAT(heard, HasSubstr("for you"));
  EXPECT_THAT(heard, HasSubstr("+PONG"));
}

TEST(RespSession, ABlockedLeaseEndsEmptyWhenItsTimeIsUp) {
  Backstage stage;
  Client worker(stage);
  EXPECT_THAT(worker.ask({"LEASE", "w", "q", "WAIT_MS", "20"}), HasSubstr("tasks *0"));
}

TEST(RespSession, ABlockedLeaseGetsADelayedTaskWhenItIsDue) {
  Backstage stage;
  Client worker(stage);
  worker.ask({"SUBMIT", "q", "later", "DELAY_MS", "30"});
  EXPECT_THAT(worker.ask({"LEASE", "w", "q", "WAIT_MS", "60000"}), HasSubstr("later"));
}

// A task that falls due while somebody is told that there is none is announced by nothing.
TEST(RespSession, BlockedLeasesGetAllThatFallsDue) {  // T17
  Backstage stage;
  std::list<Client> workers;
  for (int i = 0; i < 20; ++i) workers.emplace_back(stage).send({"LEASE", "w", "q", "WAIT_MS", "20000"});
  Client submitter(stage);
  for (int i = 0; i < 20; ++i) submitter.ask({"SUBMIT", "q", "x", "DELAY_MS", std::to_string(20 + 3 * i)});
  for (Client& worker : workers) EXPECT_THAT(worker.hear(), HasSubstr("tasks *1"));
}

TEST(RespSession, ABlockedLeaseGetsATaskThatIsPutOffWhileItWaits) {  // T17
  Backstage stage;
  Client worker(stage);
  Client other(stage);
  const auto wait = [&] {
    worker.send({"LEASE", "w", "q", "WAIT_MS", "5000"});
    other.ask({"STATS"});
  };
  wait();
  other.ask({"SUBMIT", "q", "later", "DELAY_MS", "30"});
  const std::string heard = worker.hear();
  EXPECT_THAT(heard, HasSubstr("later"));
  wait();
  other.ask({"FAIL", member(heard, "task"), member(heard, "lease"), "DELAY_MS", "30"});
  EXPECT_THAT(worker.hear(), HasSubstr("later"));
}

TEST(RespSession, ATaskThatIsPutOffIsNotWaitedForWhenNobodyDoes) {  // X4
  Backstage stage;
  Client worker(stage);
  Client other(stage);
  worker.send({"LEASE", "w", "q", "WAIT_MS", "10"});
  other.ask({"STATS"});
  other.ask({"SUBMIT", "q", "later", "DELAY_MS", "30"});
  const Instant due = stage.desk().now() + milliseconds(30);
  EXPECT_THAT(worker.hear(), HasSubstr("tasks *0"));
  stage.drive_until([&] { return stage.desk().now() > due; });
  EXPECT_GT(stage.desk().wait(), Duration{});
}

TEST(RespSession, TasksGoToThoseWhoCanDoThem) {
  Backstage stage;
  Client plain(stage);
  Client gpu(stage);
  Client submitter(stage);
  plain.send({"LEASE", "w1", "q", "WAIT_MS", "60000"});
  gpu.send({"LEASE", "w2", "q", "WAIT_MS", "60000", "CAPABILITY", "gpu"});
  submitter.ask({"SUBMIT", "q", "render", "CAPABILITY", "gpu"});
  EXPECT_THAT(gpu.hear(), HasSubstr("render"));
  submitter.ask({"SUBMIT", "q", "plain"});
  EXPECT_THAT(plain.hear(), HasSubstr("plain"));
}

// Who cannot do what is there asks once, not in every turn.
TEST(RespSession, ABlockedLeaseIsNotTriedAgainForATaskOfOthers) {  // X4
  Backstage stage;
  Client plain(stage);
  Client submitter(stage);
  submitter.ask({"SUBMIT", "q", "render", "CAPABILITY", "gpu"});
  plain.send({"LEASE", "w1", "q", "WAIT_MS", "60000"});
  for (int count = 0; count < 3; ++count) submitter.ask({"STATS"});
  EXPECT_GT(stage.authority->wait(), Duration{}) << "nobody has asked for anything";
  submitter.ask({"SUBMIT", "q", "later", "DELAY_MS", "30"});
  EXPECT_THAT(plain.hear(), HasSubstr("later")) << "what comes with time comes all the same";
  plain.send({"LEASE", "w1", "q", "WAIT_MS", "60000"});
  submitter.ask({"SUBMIT", "q", "plain"});
  EXPECT_THAT(plain.hear(), HasSubstr("plain"));
}

TEST(RespSession, ABlockedLeaseOfABusyWorkerGetsATaskWhenItHasRoom) {
  Backstage stage;
  Client worker(stage);
  Client same(stage);
  worker.ask({"HEARTBEAT", "w", "CAPACITY", "1"});
  worker.ask({"SUBMIT", "q", "one"});
  worker.ask({"SUBMIT", "q", "two"});
  worker.ask({"SUBMIT", "q", "three"});
  const std::string first = worker.ask({"LEASE", "w", "q"});
  same.send({"LEASE", "w", "q", "WAIT_MS", "60000"});
  stage.turn();
  EXPECT_EQ(same.session.output(), "");
  worker.ask({"COMPLETE", member(first, "task"), member(first, "lease")});
  EXPECT_THAT(same.hear(), HasSubstr("two"));
  same.send({"LEASE", "w", "q", "WAIT_MS", "60000"});
  stage.turn();
  worker.ask({"HEARTBEAT", "w", "CAPACITY", "2"});
  EXPECT_THAT(same.hear(), HasSubstr("three"));
}

TEST(RespSession, WhatALostConnectionLeasedGoesBackAtOnce) {
  Backstage stage;
  Client submitter(stage);
  {
    Client worker(stage);
    worker.send({"LEASE", "w", "q", "WAIT_MS", "60000"});
    submitter.ask({"PING"});
    stage.turn();
    submitter.send({"SUBMIT", "q", "x"});
    worker.send({"LEASE", "w", "q"});
  }
  submitter.hear();
  Client other(stage);
  EXPECT_THAT(other.ask({"LEASE", "w2", "q", "WAIT_MS", "60000"}), HasSubstr("$1 x"));
}

TEST(RespSession, WaitTellsTheEndOfATask) {
  Backstage stage;
  Client submitter(stage);
  Client worker(stage);
  const std::string task = member(submitter.ask({"SUBMIT", "q", "x"}), "task");
  submitter.send({"WAIT", task, "WAIT_MS", "60000"});
  const std::string lease = member(worker.ask({"LEASE", "w", "q"}), "lease");
  worker.ask({"COMPLETE", task, lease, "RESULT", "forty-two"});
  EXPECT_EQ(member(submitter.hear(), "result"), "forty-two");
  EXPECT_EQ(
      member(submitter.ask({"WAIT", member(submitter.ask({"SUBMIT", "q", "y"}), "task"), "WAIT_MS", "5"}),
             "state"),
      "waiting");
}

TEST(RespSession, NamespacesDoNotSeeEachOther) {
  Backstage stage;
  Client client(stage);
  const std::string task = member(client.ask({"SUBMIT", "q", "x"}), "task");
  EXPECT_EQ(client.ask({"USE", "other"}), "+OK ");
  EXPECT_THAT(client.ask({"GET", task}), StartsWith("-NOT_FOUND "));
  EXPECT_THAT(client.ask({"LEASE", "w", "q"}), HasSubstr("tasks *0"));
}

// X4
TEST(RespSession, ServesThoseItKnowsAndAsFarAsTheyMay) {
  const NewToken ci = make_token();
  Backstage stage;
  stage.access = Access::read("ci " + ci.hash + " default=submit").value();
  Client client(stage);
  EXPECT_THAT(client.ask({"SUBMIT", "q", "x"}), StartsWith("-NOAUTH "));
  EXPECT_THAT(client.ask({"QUEUES"}), StartsWith("-NOAUTH "));
  EXPECT_EQ(client.ask({"PING"}), "+PONG ");
  EXPECT_THAT(client.ask({"AUTH", "wrong"}), StartsWith("-WRONGPASS "));
  EXPECT_THAT(client.ask({"AUTH", "ops", ci.token}), StartsWith("-WRONGPASS "));
  EXPECT_THAT(client.ask({"HELLO", "2", "AUTH", "ci", "wrong"}), StartsWith("-WRONGPASS "));
  EXPECT_THAT(client.ask({"SUBMIT", "q", "x"}), StartsWith("-NOAUTH "));
  EXPECT_EQ(client.ask({"AUTH", "ci", ci.token}), "+OK ");
  EXPECT_THAT(client.ask({"SUBMIT", "q", "x"}), HasSubstr("task"));
  EXPECT_THAT(client.ask({"LEASE", "w", "q"}),
              StartsWith("-NOPERM 'ci' may not work in namespace 'default'"));
  client.ask({"USE", "other"});
  EXPECT_THAT(client.ask({"SUBMIT", "q", "x"}), StartsWith("-NOPERM "));
  Client second(stage);
  EXPECT_THAT(second.ask({"HELLO", "2", "AUTH", "default", ci.token}), HasSubstr("baton"));
  EXPECT_THAT(second.ask({"SUBMIT", "q", "x"}), HasSubstr("task"));
}

// X4
TEST(RespSession, TakesACertificateForATokenWhereTokensAreAskedFor) {
  Backstage stage;
  Client open_to_all(stage);
  open_to_all.session.certified("whoever");
  EXPECT_THAT(open_to_all.ask({"SUBMIT", "q", "x"}), HasSubstr("task"));
  stage.access = Access::read("ci " + make_token().hash + " default=submit").value();
  Client known(stage);
  known.session.certified("ci");
  EXPECT_THAT(known.ask({"SUBMIT", "q", "x"}), HasSubstr("task"));
  Client unknown(stage);
  unknown.session.certified("whoever");
  EXPECT_THAT(unknown.ask({"SUBMIT", "q", "x"}), StartsWith("-NOAUTH "));
}

TEST(RespSession, GoesByTheNameInACertificateWhateverTokenThatNameHas) {  // X5
  Backstage stage({}, {.connections_per_principal_max = 1});
  stage.access = Access::read("ci " + make_token().hash + " default=submit").value();
  Client known(stage);
  known.session.certified("ci");
  Client another(stage);
  another.session.certified("ci");
  EXPECT_THAT(another.ask({"SUBMIT", "q", "x"}), StartsWith("-NOAUTH ")) << "there is one already";
  EXPECT_EQ(known.ask({"RESET"}), "+RESET ");
  another.session.certified("ci");
  EXPECT_THAT(another.ask({"SUBMIT", "q", "x"}), StartsWith("-NOAUTH ")) << "it has its place again";
  stage.access = Access::read("ci " + make_token().hash + " default=submit").value();
  known.session.access_changed();
  EXPECT_THAT(known.ask({"SUBMIT", "q", "x"}), HasSubstr("task"));
  stage.access = Access::read("other " + make_token().hash + " default=submit").value();
  known.session.access_changed();
  EXPECT_THAT(known.ask({"SUBMIT", "q", "x"}), StartsWith("-NOAUTH "));
}

TEST(RespSession, ListsTasksByWorkerAndAge) {
  Backstage stage;
  Client client(stage);
  for (const char* worker : {"v", "w"}) {
    client.ask({"SUBMIT", "q", worker});
    client.ask({"LEASE", worker, "q"});
  }
  client.ask({"SUBMIT", "q", "nobody's"});
  EXPECT_THAT(client.ask({"TASKS"}), HasSubstr("tasks *3"));
  const std::string held = client.ask({"TASKS", "WORKER", "w"});
  EXPECT_THAT(held, HasSubstr("tasks *1"));
  EXPECT_EQ(member(held, "worker"), "w");
  EXPECT_THAT(client.ask({"TASKS", "OLDER_THAN_MS", "3600000"}), HasSubstr("tasks *0"));
}

TEST(RespSession, ListsQueuesPageByPage) {
  Backstage stage;
  Client client(stage);
  for (const char* queue : {"c", "a", "b"}) client.ask({"SUBMIT", queue, "x"});
  const std::string first = client.ask({"QUEUES", "COUNT", "2"});
  EXPECT_THAT(first, HasSubstr("queues *2"));
  EXPECT_EQ(member(first, "queue"), "a");
  EXPECT_EQ(member(first, "cursor"), "b");
  const std::string second = client.ask({"QUEUES", "COUNT", "2", "CURSOR", "b"});
  EXPECT_THAT(second, HasSubstr("queues *1"));
  EXPECT_EQ(member(second, "queue"), "c");
  EXPECT_EQ(member(second, "cursor"), "");
}

// X3
TEST(RespSession, RefusesBadInputAndStaysInStep) {
  Backstage stage;
  Client client(stage);
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"FROB"}, "-UNKNOWN_COMMAND there is no command 'FROB'"},
      {{"SUBMIT"}, "-INVALID_REQUEST queue is missing"},
      {{"SUBMIT", "q"}, "-INVALID_REQUEST payload is missing"},
      {{"SUBMIT", "q", "p", "FROB", "1"}, "-INVALID_REQUEST no such option: FROB"},
      {{"SUBMIT", "q", "p", "PRIORITY"}, "-INVALID_REQUEST PRIORITY needs a value"},
      {{"SUBMIT", "q", "p", "PRIORITY", "1", "priority", "2"}, "-INVALID_REQUEST PRIORITY is given twice"},
      {{"SUBMIT", "q", "p", "PRIORITY", "10"}, "-INVALID_REQUEST priority must be a number from 0 to 9"},
      {{"SUBMIT", "q", "p", "PRIORITY", "x"}, "-INVALID_REQUEST priority must be"},
      {{"SUBMIT", "q", "p", "DELAY_MS", "-1"}, "-INVALID_REQUEST delay_ms must be"},
      {{"SUBMIT", "bad name", "p"}, "-INVALID_REQUEST queue must be"},
      {{"SUBMITMANY", "q", "2", "a"}, "-INVALID_REQUEST fewer payloads than announced"},
      {{"SUBMITMANY", "q", "x"}, "-INVALID_REQUEST the number of payloads is missing"},
      {{"SUBMITMANY", "q", "0"}, "-INVALID_REQUEST submit at least one task"},
      {{"LEASE", "w", "q", "COUNT", "0"}, "-INVALID_REQUEST count must be at least 1"},
      {{"COMPLETE", "nonsense", "1-2-3"}, "-INVALID_REQUEST a task is named by"},
      {{"COMPLETE", "1-2", "nonsense"}, "-INVALID_REQUEST a lease id looks like"},
      {{"COMPLETE", "1-2", "1-2-3"}, "-NOT_FOUND "},
      {{"GET", "key:"}, "-INVALID_REQUEST a task is named by"},
      {{"TASKS", "STATE", "sleeping"}, "-INVALID_REQUEST state must be"},
      {{"QUEUES", "COUNT", "1001"}, "-INVALID_REQUEST count must be"},
      {{"USE", ""}, "-INVALID_REQUEST USE needs a namespace"},
  };
  for (const auto& [words, reply] : cases) EXPECT_THAT(client.ask(words), StartsWith(reply)) << words[0];
  EXPECT_EQ(client.ask({"PING"}), "+PONG ");
  EXPECT_THAT(client.ask({"QUEUES"}), HasSubstr("queues *0")) << "nothing was changed";
}

TEST(RespSession, EndsAStreamThatIsOutOfStepAfterAnsweringWhatCameBefore) {
  Backstage stage;
  Client client(stage);
  client.send({"SUBMIT", "q", "x"});
  client.session.receive("*1\r\n:5\r\n*1\r\n$4\r\nPING\r\n");
  const std::string heard = client.hear();
  EXPECT_THAT(heard, HasSubstr("task"));
  EXPECT_THAT(heard, HasSubstr("-PROTOCOL_ERROR expected an array of bulk strings"));
  EXPECT_THAT(heard, testing::Not(HasSubstr("PONG")));
  EXPECT_TRUE(client.session.is_closing());
}

// X3
TEST(EmptyLines, AreNotKept) {
  Backstage stage;
  Client client(stage);
  client.session.receive("\r\n\n\n");
  EXPECT_FALSE(client.session.is_halfway());
  client.session.receive("\n*1\r\n$4\r\nPI");
  EXPECT_TRUE(client.session.is_halfway());
  client.session.receive("NG\r\n\n");
  EXPECT_EQ(client.hear(), "+PONG ");
  EXPECT_FALSE(client.session.is_halfway());
}

// X5
TEST(AStranger, MaySayLittle) {
  Backstage stage;
  stage.access = Access::read("ci " + make_token().hash + " default=all").value();
  Client client(stage);
  EXPECT_THAT(client.ask({"MULTI"}), testing::StartsWith("-NOAUTH "));
  client.send({"ECHO", std::string(20'000, 'x')});
  EXPECT_THAT(client.hear(), testing::StartsWith("-PROTOCOL_ERROR "));
  EXPECT_TRUE(client.session.is_closing());
}

// X5: a group has up to 65 536 ranks.
TEST(Questions, AboutGroupsStandInLineAsWell) {
  Backstage stage;
  Client client(stage), other(stage);
  client.ask({"GROUP_JOIN", "job", "0", "2", "a"});
  stage.turn([&] {
    client.send({"GROUP_MEMBERS", "job"});
    client.send({"GROUPS"});
    other.send({"GROUP_JOIN", "job", "1", "2", "b"});
  });
  const std::string heard = client.hear();
  EXPECT_EQ(heard.find("not joined"), std::string::npos) << heard;
  EXPECT_THAT(heard, HasSubstr("world_size :2 "));
  other.hear();
}

// X5: each is little, but a connection may ask many, and there may be many connections.
TEST(Questions, ThatStandInLineAreBounded) {
  Backstage stage;
  constexpr std::size_t kClients = 300;
  std::string many;
  for (int count = 0; count < 64; ++count) many += "GET key:k\r\n";
  std::list<Client> clients;
  for (std::size_t each = 0; each < kClients; ++each) clients.emplace_back(stage).session.receive(many);
  EXPECT_LE(stage.desk().counters.commands["get"], Desk::kQuestionsMax + kClients);
  EXPECT_TRUE(stage.desk().has_many_questions());
  Client worker(stage);
  worker.session.receive("SUBMIT q a\r\nSUBMIT q b\r\nSUBMIT q c\r\n");
  EXPECT_EQ(stage.desk().counters.commands["submit"], 3u) << "who asks nothing is not kept by those who do";
  for (Client& client : clients) client.hear();
  EXPECT_EQ(stage.desk().counters.commands["get"], kClients * 64);
  EXPECT_FALSE(stage.desk().has_many_questions());
}

// X5: there may be many who send half of something large, and nothing more.
TEST(WhatHasComeInPart, IsBoundedOfAllConnections) {
  Backstage stage({}, {.half_bytes_max = 1'000'000});
  Client honest(stage);
  const std::string half = "*2\r\n$4\r\nECHO\r\n$3000000\r\n" + std::string(1'000'000, 'x');
  {
    Client large(stage);
    EXPECT_TRUE(large.session.wants_more());
    large.session.receive(half);
    EXPECT_FALSE(large.session.wants_more());
    EXPECT_TRUE(large.session.is_halfway());
    EXPECT_TRUE(honest.session.wants_more());
    EXPECT_THAT(honest.ask({"PING"}), StartsWith("+PONG"));
    honest.ask({"MULTI"});
    EXPECT_THAT(honest.ask({"PING", "x"}), StartsWith("-EXHAUSTED "));
    EXPECT_THAT(honest.ask({"EXEC"}), StartsWith("-EXECABORT "));
  }
  EXPECT_EQ(stage.desk().counters.half_bytes, 0u);
  honest.ask({"MULTI"});
  const std::string word(100'000, 'x');
  while (honest.session.wants_more()) EXPECT_THAT(honest.ask({"PING", word}), StartsWith("+QUEUED"));
  EXPECT_GE(stage.desk().counters.half_bytes, 1'000'000u);
  EXPECT_TRUE(honest.session.is_halfway()) << "it is not waited for for ever";
  honest.session.give_up();
  EXPECT_THAT(honest.session.output(), StartsWith("-EXHAUSTED "));
}

// X5: where those that wait half a minute went one by one, all others would wait for hours.
TEST(WhatHasComeInPart, IsReadOnOnceAQuarterOfTheRoomIsFree) {
  Backstage stage({}, {.half_bytes_max = 1'000'000});
  Client large(stage);
  large.session.receive("*2\r\n$4\r\nECHO\r\n$3000000\r\n" + std::string(100'000, 'x'));
  const std::uint64_t own = stage.desk().counters.half_bytes;
  const auto is_read_with = [&](std::uint64_t others) {
    stage.desk().counters.half_bytes = own + others;
    return large.session.wants_more();
  };
  EXPECT_TRUE(is_read_with(999'999 - own));
  EXPECT_FALSE(is_read_with(1'000'000 - own));
  EXPECT_FALSE(is_read_with(750'000 - own));
  EXPECT_TRUE(is_read_with(749'999 - own));
  EXPECT_TRUE(is_read_with(999'999 - own));
  stage.desk().counters.half_bytes = own;
}

// X5: what is refused is not kept, nor what was to go with it.
TEST(WhatHasComeInPart, OfATransactionCountsOnlyWhatIsKept) {
  Backstage stage;
  Client client(stage);
  std::vector<std::string> words(4096);
  words[0] = "PING";
  client.ask({"MULTI"});
  while (client.ask(words).starts_with("+QUEUED"))
    EXPECT_LE(stage.desk().counters.half_bytes, Transaction::kBytesMax + Desk::kSmall);
  client.ask(words);
  EXPECT_EQ(stage.desk().counters.half_bytes, 0u);
  EXPECT_THAT(client.ask({"EXEC"}), StartsWith("-EXECABORT "));
}

// X5: a command that waits may do so for an hour.
TEST(WhatHasComeInPart, IsNotWhatAWaitingCommandCameWith) {
  Backstage stage;
  Client client(stage);
  const std::string large = "*3\r\n$4\r\nPING\r\n$1000000\r\n" + std::string(1'000'000, 'x');
  client.session.receive(large);
  EXPECT_GE(stage.desk().counters.half_bytes, 1'000'000u);
  client.session.receive("\r\n$1\r\nx\r\nLEASE w q WAIT_MS 3600000\r\nP");
  EXPECT_TRUE(client.session.is_waiting());
  EXPECT_LT(stage.desk().counters.half_bytes, 1'000u);
  Client(stage).ask({"SUBMIT", "q", "x"});
  EXPECT_THAT(client.hear(), HasSubstr("attempt"));
}

}  // namespace
}  // namespace baton::server
