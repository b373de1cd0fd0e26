#include "server/event_stream.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing.h"
#include "server/http_session.h"
#include "tests/backstage.h"

namespace baton::server {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const Pages kNoPages = [](std::string_view, const PrincipalRef&) { return std::optional<Page>(); };

class Watching {
 public:
  explicit Watching(Backstage& stage, const std::string& query = "", const std::string& headers = "")
      : stage_(stage), session(stage.desk(), stage.access, {}, kNoPages, [] {}) {
    session.receive(fmt::format("GET /v1/events{} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", query, headers));
    stage.turn();
  }
  // All that has come, once this has.
  std::string until(const std::string& text) {
    stage_.drive_until([&] { return session.output().find(text) != std::string::npos; });
    return std::exchange(session.output(), {});
  }

 private:
  Backstage& stage_;

 public:
  HttpSession session;
};

TEST(EventStream, TellsATasksLifeInTheOrderOfTheLog) {
  Backstage stage;
  Client client(stage);
  Watching watching(stage);
  const std::string begun = watching.until("event: begin\n");
  EXPECT_THAT(begun, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"));

  const std::string submitted = client.ask({"SUBMIT", "q", "secret payload", "KEY", "k"});
  const std::string task = member(submitted, "task");
  const std::string leased = client.ask({"LEASE", "w", "q"});
  client.ask({"COMPLETE", task, member(leased, "lease"), "RESULT", "secret result"});
  const std::string told = watching.until("event: TaskCompleted\n");
  const std::size_t created =
      told.find(fmt::format("id: {}\nevent: TaskCreated\ndata: {{", member(submitted, "lsn")));
  const std::size_t granted = told.find("event: LeaseGranted\n");
  ASSERT_NE(created, std::string::npos) << told;
  EXPECT_LT(created, granted);
  EXPECT_LT(granted, told.find("event: TaskCompleted\n"));
  EXPECT_THAT(told,
              HasSubstr(fmt::format(R"("namespace":"default","queue":"q","task":"{}","key":"k")", task)));
  EXPECT_THAT(told,
              HasSubstr(fmt::format(R"("fence":"{}","worker":"w","attempt":1)", member(leased, "fence"))));
  EXPECT_THAT(told, Not(HasSubstr("secret")));
  EXPECT_THAT(told, Not(HasSubstr(member(leased, "lease")))) << "the lease is the worker's own secret";
}

TEST(EventStream, TellsEveryKindOfEvent) {
  Backstage stage;
  Client client(stage);
  Watching watching(stage);
  client.ask({"SUBMITMANY", "q", "2", "a", "b", "MAX_FAILURES", "1"});
  std::string leased = client.ask({"LEASE", "w", "q"});
  const std::string held = member(leased, "task") + " " + member(leased, "lease");
  client.ask({"EXTENDMANY", "1", held, "TTL_MS", "90000"});
  client.ask({"FAIL", member(leased, "task"), member(leased, "lease"), "REASON", "why"});
  leased = client.ask({"LEASE", "w", "q", "TTL_MS", "1"});
  watching.until("event: LeaseExpired\n");
  client.ask({"COMPLETE", member(leased, "task"), member(leased, "lease")});
  client.ask({"CANCEL", member(leased, "task"), "ACTOR", "me"});
  client.ask({"PAUSE", "empty"});
  client.ask({"RESUME", "empty"});
  const std::string told = watching.until("event: QueueResumed\n");
  EXPECT_THAT(told, HasSubstr("event: TaskCancelled\n"));
  EXPECT_THAT(told, HasSubstr("event: TaskDead\n"));
  EXPECT_THAT(told, HasSubstr(R"("why":"cancelled","actor":"me")"));
  EXPECT_THAT(told, HasSubstr("event: QueuePaused\n"));
  EXPECT_THAT(told, HasSubstr(R"("namespace":"default","queue":"empty")"));
}

TEST(EventStream, TellsNothingBeforeItIsDurable) {
  Backstage stage;
  Client client(stage);
  Watching watching(stage);
  watching.until("begin");
  for (int times = 0; times < 20; ++times) {
    client.send({"SUBMIT", "q", "x"});
    stage.drive_until([&] { return !watching.session.output().empty(); });
    EXPECT_EQ(stage.authority->durable(), stage.authority->engine().state().last);
    watching.session.output().clear();
    client.hear();
  }
}

TEST(EventStream, TellsWhatIsAskedFor) {
  Backstage stage;
  Client client(stage);
  const std::string task = member(client.ask({"SUBMIT", "mail", "x", "KEY", "k"}), "task");
  Watching of_queue(stage, "?queue=mail");
  Watching of_task(stage, "?task=" + task);
  Watching of_key(stage, "?task=key:k");
  Watching elsewhere(stage, "?namespace=other");
  client.ask({"SUBMIT", "other", "x"});
  client.ask({"SUBMIT", "mail", "y"});
  client.ask({"CANCEL", task});
  for (Watching* watching : {&of_task, &of_key}) {
    const std::string told = watching->until("TaskDead");
    EXPECT_THAT(told, Not(HasSubstr("TaskCreated")));
  }
  const std::string told = of_queue.until("TaskDead");
  EXPECT_THAT(told, HasSubstr("TaskCreated"));
  EXPECT_THAT(told, Not(HasSubstr(R"("queue":"other")")));
  client.ask({"USE", "other"});
  client.ask({"SUBMIT", "q", "x"});
  EXPECT_THAT(elsewhere.until("TaskCreated"), Not(HasSubstr("default")));
}

TEST(EventStream, SaysWhatWasMissed) {
  Backstage stage;
  Client client(stage);
  const std::string lsn = member(client.ask({"SUBMIT", "q", "x"}), "lsn");
  Watching nothing_missed(stage, "",
                          fmt::format("Last-Event-ID: {}\r\n", stage.authority->engine().state().last));
  EXPECT_THAT(nothing_missed.until("event: begin\n"), Not(HasSubstr("gap")));
  client.ask({"SUBMIT", "q", "y"});
  Watching missed(stage, "", "Last-Event-ID: " + lsn + "\r\n");
  const std::string told = missed.until("event: begin\n");
  EXPECT_THAT(told, HasSubstr("event: gap\ndata: {\"after\":" + lsn + ",\"until\":"));
}

// X3
TEST(EventStream, EndsForAReaderThatIsTooSlow) {
  Backstage stage;
  Client client(stage);
  Watching watching(stage);
  std::vector<std::string> submit{"SUBMITMANY", "q", "1000"};
  submit.resize(submit.size() + 1000, "x");
  while (!watching.session.is_closing()) {
    EXPECT_LE(watching.session.output().size(), EventStream::kUnreadBytesMax);
    client.ask(submit);
  }
  EXPECT_LE(watching.session.output().size(), EventStream::kUnreadBytesMax + 100);
  EXPECT_THAT(watching.session.output(), testing::EndsWith("1 MiB was not read in time\"}\n\n"));
}

// X4
TEST(EventStream, IsForThoseWhoMayAsk) {
  const NewToken ci = make_token();
  Backstage stage;
  stage.access = Access::read("ci " + ci.hash + " default=query other=submit").value();
  const std::string bearer = "Authorization: Bearer " + ci.token + "\r\n";
  EXPECT_THAT(Watching(stage).session.output(), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Watching(stage, "", bearer).session.output(), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Watching(stage, "?namespace=other", bearer).session.output(), StartsWith("HTTP/1.1 403"));
}

// X3
TEST(EventStream, RefusesBadInput) {
  Backstage stage;
  EXPECT_THAT(Watching(stage, "?frob=1").session.output(), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Watching(stage, "?task=nonsense").session.output(), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Watching(stage, "?task=key:k").session.output(), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Watching(stage, "", "Last-Event-ID: yesterday\r\n").session.output(),
              StartsWith("HTTP/1.1 400"));
}

class Recorder final : public EventWatcher {
 public:
  void happened(std::string_view text) override { heard += text; }
  std::string heard;
};

TEST(EventFeed, GivesASignOfLifeWhenNothingHappens) {
  core::Authority authority;
  EventFeed feed(authority.state());
  Recorder recorder;
  feed.watch(recorder, {.ns = "n"}, {}, core::kStart);
  feed.tell(authority.state().last, core::kStart);
  recorder.heard.clear();
  feed.tell(authority.state().last, core::just_before(core::kStart + EventFeed::kQuietMax));
  EXPECT_EQ(recorder.heard, "");
  feed.tell(authority.state().last, core::kStart + EventFeed::kQuietMax);
  EXPECT_THAT(recorder.heard, StartsWith(": "));
}

// X3
TEST(EventFeed, HasNoMoreWatchersThanItMay) {
  core::Authority authority;
  EventFeed feed(authority.state());
  std::vector<Recorder> recorders(EventFeed::kWatchersMax + 1);
  for (std::size_t at = 0; at < EventFeed::kWatchersMax; ++at)
    EXPECT_TRUE(feed.watch(recorders[at], {}, {}, core::kStart));
  EXPECT_FALSE(feed.watch(recorders.back(), {}, {}, core::kStart));
  feed.forget(recorders.front());
  EXPECT_TRUE(feed.watch(recorders.back(), {}, {}, core::kStart));
}

}  // namespace
}  // namespace baton::server
