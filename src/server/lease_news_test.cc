#include "server/lease_news.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing.h"
#include "tests/backstage.h"

namespace baton::server {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Held {
  std::string task;
  std::string lease;
};

// A worker on a connection of its own, in the version that knows pushes, or the one before.
class WorkingClient : public Client {
 public:
  explicit WorkingClient(Backstage& stage, int version = 3) : Client(stage), stage_(stage) {
    ask({"HELLO", std::to_string(version)});
  }
  Held lease(const std::string& ttl_ms = "60000") {
    const std::string leased = ask({"LEASE", "w", "q", "TTL_MS", ttl_ms});
    return {member(leased, "task"), member(leased, "lease")};
  }
  // What comes without having been asked for.
  std::string listen() {
    stage_.drive_until([&] { return !session.output().empty(); });
    return hear();
  }

 private:
  Backstage& stage_;
};

std::string push(const Held& held) {
  return fmt::format(">3 $4 lost ${} {} ${} {} ", held.task.size(), held.task, held.lease.size(), held.lease);
}

TEST(LeaseNews, TellAWorkerOnceThatItsLeaseExpired) {
  Backstage stage;
  WorkingClient worker(stage);
  worker.ask({"SUBMIT", "q", "x"});
  const Held held = worker.lease("5");
  EXPECT_EQ(worker.listen(), push(held));
  EXPECT_EQ(worker.ask({"PING"}), "+PONG ");
}

TEST(LeaseNews, TellAWorkerThatItsTaskWasCancelledOnceThatIsDurable) {
  Backstage stage;
  WorkingClient worker(stage);
  Client submitter(stage);
  submitter.ask({"SUBMITMANY", "q",  "20", "1",  "2",  "3",  "4",  "5",  "6",  "7",  "8", "9",
                 "10",         "11", "12", "13", "14", "15", "16", "17", "18", "19", "20"});
  for (int times = 0; times < 20; ++times) {
    const Held held = worker.lease();
    submitter.send({"CANCEL", held.task});
    stage.drive_until([&] { return !worker.session.output().empty(); });
    EXPECT_EQ(stage.authority->durable(), stage.authority->engine().state().last);
    EXPECT_EQ(worker.hear(), push(held));
    submitter.hear();
  }
}

TEST(LeaseNews, DoNotTellAWorkerWhatItDidItself) {
  Backstage stage;
  WorkingClient worker(stage);
  worker.ask({"SUBMITMANY", "q", "3", "a", "b", "c"});
  const Held first = worker.lease();
  const Held second = worker.lease();
  const Held third = worker.lease();
  worker.send({"EXTEND", first.task, first.lease, "TTL_MS", "120000"});
  worker.send({"COMPLETE", first.task, first.lease});
  worker.send({"FAIL", second.task, second.lease, "FINAL"});
  worker.send({"RELEASE", third.task, third.lease});
  EXPECT_THAT(worker.hear(), Not(HasSubstr("lost")));
  EXPECT_EQ(worker.ask({"PING"}), "+PONG ");
}

TEST(LeaseNews, GoToWhoeverExtendedTheLeaseLast) {
  Backstage stage;
  WorkingClient worker(stage);
  WorkingClient keeper(stage);
  worker.ask({"SUBMIT", "q", "x", "KEY", "k"});
  const Held held = worker.lease();
  keeper.ask({"EXTEND", "key:k", held.lease, "TTL_MS", "120000"});
  keeper.send({"CANCEL", held.task});
  EXPECT_THAT(keeper.hear() + keeper.ask({"PING"}), HasSubstr(push(held)));
  EXPECT_EQ(worker.ask({"PING"}), "+PONG ");
}

TEST(LeaseNews, PassAWorkerThatWaitsForMoreWork) {
  Backstage stage;
  WorkingClient worker(stage);
  Client submitter(stage);
  submitter.ask({"SUBMIT", "q", "x"});
  const Held held = worker.lease();
  worker.send({"LEASE", "w", "q", "WAIT_MS", "60000"});
  submitter.ask({"CANCEL", held.task});
  stage.drive_until([&] { return !worker.session.output().empty(); });
  submitter.ask({"SUBMIT", "q", "more"});
  const std::string heard = worker.hear();
  EXPECT_THAT(heard, StartsWith(push(held)));
  EXPECT_THAT(heard, HasSubstr("more"));
}

TEST(LeaseNews, DoNotBreakIntoTheReplyToExec) {
  Backstage stage;
  WorkingClient worker(stage);
  Client submitter(stage);
  submitter.ask({"SUBMIT", "q", "x"});
  const Held held = worker.lease();
  worker.ask({"MULTI"});
  worker.ask({"SUBMIT", "q", "y"});
  worker.ask({"PING"});
  submitter.send({"CANCEL", held.task});
  worker.send({"EXEC"});
  std::string heard = worker.hear();
  EXPECT_THAT(heard, HasSubstr("existed #f +PONG "));
  if (heard.find("lost") == std::string::npos) heard += worker.listen();
  EXPECT_TRUE(heard.starts_with(push(held)) || heard.ends_with(push(held))) << heard;
}

TEST(LeaseNews, ComeWithTheRepliesOfTheOlderProtocol) {
  Backstage stage;
  WorkingClient worker(stage, 2);
  worker.ask({"SUBMITMANY", "q", "4", "a", "b", "c", "d"});
  const Held kept = worker.lease();
  const std::vector<std::string> questions[] = {{"EXTEND", kept.task, kept.lease},
                                                {"EXTENDMANY", "1", kept.task + " " + kept.lease},
                                                {"HEARTBEAT", "w"}};
  for (const std::vector<std::string>& question : questions) {
    const Held held = worker.lease();
    EXPECT_THAT(worker.ask(question), Not(HasSubstr("lost")));
    worker.ask({"CANCEL", held.task});
    stage.turn();
    const std::string told = worker.ask(question);
    EXPECT_THAT(told, HasSubstr("lost *1"));
    EXPECT_THAT(told, HasSubstr(held.lease));
    EXPECT_THAT(worker.ask(question), Not(HasSubstr("lost"))) << "once";
  }
}

// X3
TEST(LeaseNews, AreKeptForAReplyUpToALimit) {
  Backstage stage;
  WorkingClient worker(stage, 2);
  for (int more = 0; more < 2; ++more) {
    std::vector<std::string> submit{"SUBMITMANY", "q", std::to_string(256 + more)};
    submit.resize(submit.size() + 256 + static_cast<std::size_t>(more), "x");
    worker.ask(submit);
    worker.ask({"LEASE", "w", "q", "COUNT", std::to_string(256 + more), "TTL_MS", "1"});
    stage.drive_until([&] { return stage.authority->engine().state().leases.used() == 0; });
    worker.ask({"PAUSE", "q"});
    EXPECT_THAT(worker.ask({"HEARTBEAT", "w"}), HasSubstr("lost *256"));
    worker.ask({"RESUME", "q"});
    const std::string again = worker.ask({"LEASE", "w", "q", "COUNT", "1000"});
    for (std::size_t at = 0; (at = again.find(" task ", at)) != std::string::npos; ++at)
      worker.ask({"COMPLETE", member(again.substr(at), "task"), member(again.substr(at), "lease")});
  }
}

class Listener final : public Finisher {
 public:
  void finished(Operation&) override {}
  bool wants_news() const override { return true; }
  void lost(const HeldLease& lease) override { heard.push_back(lease); }
  std::vector<HeldLease> heard;
};

TEST(LeaseNews, AreForgottenWithTheLeaseWhoeverWaitsForThem) {
  core::Leased leased = core::a_leased_task();
  core::Authority& authority = leased.authority;
  LeaseNews news(authority.state());
  Listener listener;
  news.watch(listener, {leased.held.task, leased.held.lease});
  EXPECT_EQ(news.size(), 1u);
  news.forget(listener);
  const core::LeaseExpired expired{.task = leased.held.task.lsn, .lease = leased.held.lease.lsn};
  authority.record(expired, core::kStart + core::kTtl);
  news.recorded(expired);
  news.tell(authority.state().last);
  EXPECT_EQ(news.size(), 0u);
  EXPECT_TRUE(listener.heard.empty());
}

TEST(LeaseNews, TellWhoeverIsGivenALeaseThatIsLostAlready) {
  core::Leased leased = core::a_leased_task();
  core::Authority& authority = leased.authority;
  LeaseNews news(authority.state());
  Listener listener;
  authority.record(core::TaskDead{.task = leased.held.task.lsn}, core::kStart);
  news.watch(listener, {leased.held.task, leased.held.lease});
  news.tell(authority.state().last - 1);
  EXPECT_TRUE(listener.heard.empty()) << "not before it is durable";
  news.tell(authority.state().last);
  EXPECT_EQ(listener.heard.size(), 1u);
}

}  // namespace
}  // namespace baton::server
