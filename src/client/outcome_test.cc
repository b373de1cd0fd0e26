// What the client says about calls whose reply was lost or late, and which it makes again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client/call.h"
#include "client/work_coordinator.h"
#include "stream/fresh_uuid.h"
#include "tests/network.h"
#include "wire/resp_value.h"

namespace baton::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// In which a call is sent, also on a busy machine.
constexpr Duration kToBeSent = seconds(1);

// It was sent, it happened, and the answer got lost.
TEST(Client, SaysThatAnOutcomeIsUnknown) {
  Network network;
  ASSERT_TRUE(network.client.queues());  // connected
  network.proxy.set({.holds_replies = true});
  Tally tally;
  network.client.submit({.queue = "q", .payload = "x"}, tally.expects<Submitted>());
  ASSERT_TRUE(eventually([&] { return network.direct.queues()->queues.size() == 1; }));
  network.client.lease({.worker = "w", .queues = {"q"}}, tally.expects<std::vector<Leased>>());
  ASSERT_TRUE(eventually([&] { return network.direct.queues()->queues.at(0).leased == 1; }));
  network.client.purge("q", 1, tally.expects<std::uint64_t>());
  network.client.submit_many({.queue = "q", .payloads = {"x"}},
                             tally.expects<std::vector<Result<Submitted>>>());
  ASSERT_TRUE(eventually([&] { return network.direct.queues()->queues.at(0).waiting == 1; }));
  network.proxy.reset();
  network.proxy.set({});
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"OUTCOME_UNKNOWN", 4}}));
  EXPECT_TRUE(network.client.queues());
}

// S25, X7: it was sent, and nobody wants to wait for the answer any longer.
TEST(WorkOfAClient, ThatIsStoppedMayHaveHappened) {
  Network network;
  ClientOptions patient = to(network.proxy.address());
  patient.deadline = patient.silence_max = minutes(2);
  Client client(patient);
  ASSERT_TRUE(client.queues());  // connected
  network.proxy.set({.holds_replies = true});
  WorkCoordinator streams(client);
  const stream::Instance me{.id = {stream::fresh_uuid()}, .service = "orders"};
  std::stop_source stop;
  std::thread stops([&] {
    EXPECT_TRUE(eventually([&] {
      const auto known = network.direct.ask({"STREAM_INSTANCES"});
      return known && !known->find("instances")->items.empty();
    }));
    stop.request_stop();
  });
  const std::int64_t before = now_ms();
  const auto said = streams.process_work_batch({.instance = me}, stop.get_token());
  stops.join();
  EXPECT_EQ(said ? Errc::closed : said.error().code, Errc::outcome_unknown);
  EXPECT_LT(now_ms() - before, patient.deadline.ms / 2);
}

// S22: whoever listens waits a while before it asks again.
TEST(WorkOfAClient, SaysWhyItCannotBeWaitedFor) {
  Network network;
  WorkCoordinator streams(network.client);
  const stream::InstanceId me{stream::fresh_uuid()};
  ASSERT_TRUE(streams.process_work_batch({.instance = {.id = me, .service = "orders"}}));
  ASSERT_TRUE(streams.leave(me));
  const auto woken = streams.wait_for_work(minutes(1));
  EXPECT_EQ(woken ? Errc::closed : woken.error().code, Errc::not_found);
}

// Says CLOSED to so many submissions after the first, as a coordinator does that stops, and notes those it
// takes.
class Stopping {
 public:
  explicit Stopping(int refusals) : refusals_(refusals) {}
  std::string answer(const Words& words) {
    const std::lock_guard lock(mutex_);
    if (words[0] != "SUBMIT") return greeting_or(words, "%1\r\n+queues\r\n*0\r\n");
    if (!taken_.empty() && refusals_-- > 0) return "-CLOSED the server is stopping: connect again\r\n";
    taken_.push_back(words[2]);
    return "%3\r\n+lsn\r\n:1\r\n+task\r\n+a-1\r\n+existed\r\n#f\r\n";
  }
  std::vector<std::string> taken() {
    const std::lock_guard lock(mutex_);
    return taken_;
  }

 private:
  std::mutex mutex_;
  int refusals_;
  std::vector<std::string> taken_;
};

// X2: what was answered CLOSED was not taken, with or without a key.
TEST(Client, SaysAgainWhatAStoppingServerDidNotTake) {
  Stopping stopping(3);
  ScriptedServer server([&](const Words& words) { return stopping.answer(words); });
  Client client(to(server.address()));
  Tally tally;
  for (const char* payload : {"a", "b", "c", "d"})
    client.submit({.queue = "q", .payload = payload}, tally.expects<Submitted>());
  client.queues({}, tally.expects<QueuePage>());
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"", 5}}));
  EXPECT_EQ(stopping.taken(), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST(Client, SaysAgainManyThatAStoppingServerDidNotTake) {  // X2
  std::atomic<int> refusals = 2;
  ScriptedServer server([&](const Words& words) -> std::string {
    if (words[0] != "SUBMITMANY") return greeting_or(words, "");
    if (refusals-- > 0) return "*2\r\n-CLOSED it stops\r\n-CLOSED it stops\r\n";
    return "*2\r\n%3\r\n+lsn\r\n:1\r\n+task\r\n+a-1\r\n+existed\r\n#f\r\n-CONFLICT another\r\n";
  });
  Client client(to(server.address()));
  const auto many = client.submit_many({.queue = "q", .payloads = {"a", "b"}, .keys = {"j", "k"}});
  ASSERT_TRUE(many && many->size() == 2u);
  EXPECT_TRUE(many->at(0));
  EXPECT_EQ(many->at(1).error().code, Errc::conflict);
}

TEST(Client, SaysThatNothingHappenedIfNobodyComesAfterAStoppingServer) {
  Stopping stopping(1000);
  ScriptedServer server([&](const Words& words) { return stopping.answer(words); });
  ClientOptions options = to(server.address());
  options.backoff_min = options.backoff_max = minutes(1);
  Client client(options);
  ASSERT_TRUE(client.submit({.queue = "q", .payload = "a"}));
  const auto submitted = client.submit({.queue = "q", .payload = "b"}, seconds(1));
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error(),
            (Error{Errc::unavailable, "no coordinator could be reached: the coordinator is stopping"}));
}

// X2: what could not be read was not taken either. It may arrive whole the next time, but not for ever.
TEST(Client, SaysOnceAgainWhatCouldNotBeRead) {
  for (const std::string key : {"", "k"}) {
    std::atomic<int> times = 0;
    ScriptedServer server([&](const Words& words) {
      if (words[0] == "SUBMIT") ++times;
      return greeting_or(words, "-PROTOCOL_ERROR too many arguments\r\n");
    });
    Client client(to(server.address()));
    const auto submitted = client.submit({.queue = "q", .payload = "x", .key = key});
    ASSERT_FALSE(submitted);
    EXPECT_EQ(submitted.error(), (Error{Errc::invalid_request, "PROTOCOL_ERROR too many arguments"}));
    EXPECT_EQ(times, 2);
  }
}

// X2: an answer that waits to be read is one, however late that is.
TEST(Client, HearsWhatCameInTimeAlsoIfItStoodStillMeanwhile) {
  std::atomic<bool> stands_still = false, has_answered = false;
  ScriptedServer server([&](const Words& words) -> std::string {
    if (words[0] == "QUEUES") has_answered = stands_still.load();  // so what was asked before it is answered
    if (words[0] == "SUBMIT" && words[2] == "b") eventually([&] { return stands_still.load(); });
    return greeting_or(words, words[0] == "SUBMIT" ? "%3\r\n+lsn\r\n:1\r\n+task\r\n+a-1\r\n+existed\r\n#f\r\n"
                                                   : "%1\r\n+queues\r\n*0\r\n");
  });
  Client client(to(server.address()));
  Tally tally;
  auto first = tally.expects<Submitted>(), second = tally.expects<Submitted>();
  auto third = tally.expects<QueuePage>();
  // From the client's own thread, so that all three are sent before an answer is read.
  client.queues({}, [&](const Result<QueuePage>&) {
    const std::int64_t until = now_ms() + kToBeSent.ms;
    client.submit({.queue = "q", .payload = "a"}, [&, until](Result<Submitted> submitted) {
      stands_still = true;
      EXPECT_TRUE(eventually([&] { return has_answered && now_ms() > until; }));
      first(std::move(submitted));
    });
    client.submit({.queue = "q", .payload = "b"}, second, kToBeSent);
    client.queues({}, third);
  });
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"", 3}}));
}

// Before it was refused it may have been taken: that answer was lost.
TEST(Client, DoesNotForgetAnEarlierAttemptWhenAServerStops) {
  std::atomic<bool> is_first = true;
  ScriptedServer server([&](const Words& words) {
    return greeting_or(words, words[0] == "SUBMIT" && is_first.exchange(false) ? "hello\r\n" : "-CLOSED\r\n");
  });
  Client client(to(server.address()));
  const auto submitted = client.submit({.queue = "q", .payload = "x", .key = "k"}, seconds(1));
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, Errc::outcome_unknown) << submitted.error().message;
}

// What a call comes to whose first answer is lost, if the coordinator then says this to greetings and this to
// the repetition.
Error refused_when_repeated(const auto& call, const std::string& to_greeting,
                            const std::string& to_repetition) {
  std::atomic<bool> was_taken = false;
  ScriptedServer server([&](const Words& words) -> std::string {
    if (const std::string greeting = greeting_or(words, ""); !greeting.empty())
      return was_taken ? to_greeting : greeting;
    return was_taken.exchange(true) ? to_repetition : "hello\r\n";
  });
  Client client(to(server.address()));
  const auto came = call(client);
  return came ? Error{} : came.error();
}

// X2: it may have happened the first time, and the refusal does not tell
TEST(Client, SaysThatTheOutcomeIsUnknownOfWhatIsRefusedWhenItIsRepeated) {
  const auto submit = [](Client& client) {
    return client.submit({.queue = "q", .payload = "x", .key = "k"}, seconds(10));
  };
  const auto ask = [](Client& client) { return client.queues({}, seconds(10)); };
  const Error out = refused_when_repeated(submit, "-WRONGPASS no such token\r\n", "");
  EXPECT_EQ(out.code, Errc::outcome_unknown);
  EXPECT_THAT(out.message, AllOf(HasSubstr("it was sent"), HasSubstr("WRONGPASS no such token")));
  for (const std::string code : {"EXHAUSTED", "NO_SPACE", "PERMISSION_DENIED"}) {
    const Error error = refused_when_repeated(submit, "+OK\r\n", "-" + code + " not now\r\n");
    EXPECT_EQ(error.code, Errc::outcome_unknown);
    EXPECT_THAT(error.message, AllOf(HasSubstr("it was sent"), HasSubstr(code + ": not now")));
  }
  // This one does tell; and a question changes nothing, however often it is asked.
  EXPECT_EQ(refused_when_repeated(submit, "+OK\r\n", "-CONFLICT another\r\n").code, Errc::conflict);
  EXPECT_EQ(refused_when_repeated(ask, "-WRONGPASS no\r\n", "").code, Errc::permission_denied);
  EXPECT_EQ(refused_when_repeated(ask, "+OK\r\n", "-EXHAUSTED not now\r\n").code, Errc::exhausted);
}

// X2: in a list each has an outcome of its own, and the first time was another.
TEST(Client, SaysThatTheOutcomeIsUnknownOfThoseOfManyThatAreRefusedWhenTheyAreRepeated) {
  const auto submit = [](Client& client) -> Result<Submitted> {
    const auto many = client.submit_many({.queue = "q", .payloads = {"x"}, .keys = {"k"}}, seconds(10));
    return many ? many->at(0) : std::unexpected(many.error());
  };
  const Error error =
      refused_when_repeated(submit, "+OK\r\n", "*1\r\n-EXHAUSTED not now; retry_after_ms=250\r\n");
  EXPECT_EQ(error.code, Errc::outcome_unknown);
  EXPECT_THAT(error.message, AllOf(HasSubstr("it was sent"), HasSubstr("EXHAUSTED not now")));
  EXPECT_EQ(error.retry_after, milliseconds(250));
  EXPECT_EQ(refused_when_repeated(submit, "+OK\r\n", "*1\r\n-CONFLICT another\r\n").code, Errc::conflict);
}

TEST(Client, RepeatsWhatMayBeRepeated) {
  Network network;
  const auto task = network.client.submit({.queue = "q", .payload = "x"});
  const auto leased = network.client.lease({.worker = "w", .queues = {"q"}});
  ASSERT_TRUE(task && leased && leased->size() == 1u);
  network.proxy.set({.holds_replies = true});
  Tally tally;
  std::atomic<bool> existed = false;
  auto keyed = tally.expects<Submitted>();
  network.client.submit({.queue = "q", .payload = "y", .key = "k"}, [&](Result<Submitted> submitted) {
    existed = submitted && submitted->existed;
    keyed(std::move(submitted));
  });
  network.client.extend(leased->front().held(), seconds(90), tally.expects<Duration>());
  network.client.get(task->task, tally.expects<Task>());
  std::string outcome;
  auto completed = tally.expects<Verdict>();
  network.client.complete(leased->front().held(), "done", [&](Result<Verdict> verdict) {
    outcome = verdict ? verdict->outcome : "";
    completed(std::move(verdict));
  });
  network.client.wait(task->task, seconds(10), tally.expects<Task>());
  ASSERT_TRUE(eventually([&] { return network.direct.get("key:k").has_value(); }));
  ASSERT_TRUE(eventually([&] { return network.direct.get(task->task)->view.state == "completed"; }));
  network.proxy.reset();
  network.proxy.set({});
  // The extension comes after the completion now, so it may be too late; it is an answer all the same.
  const auto came = tally.wait();
  EXPECT_EQ(came.size() == 1 ? came.at("") : came.at("") + came.at("LEASE_LOST"), 5);
  EXPECT_TRUE(existed);
  EXPECT_EQ(outcome, "completed");
  EXPECT_EQ(network.direct.queues()->queues.at(0).completed, 1u);
}

// X2: kill -9 in the middle of it, three times. What was acknowledged is there, once.
TEST(Client, LosesNothingWhenTheServerIsKilledAndComesBack) {
  Network network;
  constexpr int kThreads = 4;
  std::atomic<bool> ends = false;
  std::atomic<int> acknowledged = 0;
  std::mutex mutex;
  std::set<std::string> keys;
  std::atomic<int> completed = 0;
  std::atomic<int> troubles = 0;
  {
    std::list<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; !ends; ++i) {
          const std::string key = std::to_string(thread) + "-" + std::to_string(i);
          const auto submitted = network.client.submit({.queue = "q", .payload = key, .key = key});
          if (!submitted) {
            ++troubles;
            continue;
          }
          ++acknowledged;
          const std::lock_guard lock(mutex);
          keys.insert(key);
        }
      });
    }
    threads.emplace_back([&] {
      while (!ends) {
        const auto leased = network.client.lease({.worker = "w", .queues = {"q"}});
        if (!leased || leased->empty()) continue;  // its outcome may be unknown: then it waits for its expiry
        const auto verdict = network.client.complete(leased->front().held(), leased->front().payload);
        if (!verdict || verdict->cancelled) {
          ++troubles;
        } else {
          ++completed;
        }
      }
    });
    for (int round = 1; round <= 3; ++round) {
      EXPECT_TRUE(eventually([&] { return acknowledged >= 200 * round && completed >= 20 * round; }))
          << round;
      network.restart();
    }
    const int before = acknowledged;
    EXPECT_TRUE(eventually([&] { return acknowledged >= before + 100; }));
    ends = true;
  }
  EXPECT_EQ(troubles, 0);
  std::multiset<std::string> seen;
  std::uint64_t done = 0;
  TaskQuery query{.queue = "q", .count = 1000};
  do {
    const auto page = network.client.tasks(query);
    ASSERT_TRUE(page) << page.error().message;
    for (const TaskView& view : page->tasks) {
      seen.insert(view.key);
      done += view.state == "completed";
    }
    query.cursor = page->cursor;
  } while (query.cursor != 0);
  EXPECT_EQ(seen, std::multiset<std::string>(keys.begin(), keys.end()));
  EXPECT_EQ(done, static_cast<std::uint64_t>(completed));
}

TEST(Client, EndsACallAtItsDeadline) {
  Network network;
  ASSERT_TRUE(network.client.queues());
  network.proxy.set({.holds_requests = true, .holds_replies = true});
  EXPECT_EQ(network.client.get("a-1", milliseconds(30)).error().code, Errc::deadline_exceeded);
  EXPECT_EQ(network.client.submit({.queue = "q", .payload = "x"}, kToBeSent).error().code,
            Errc::outcome_unknown);
  EXPECT_EQ(network.client.wait("a-1", milliseconds(5), milliseconds(30)).error().code, Errc::unavailable);
  network.proxy.set({});
  EXPECT_TRUE(network.client.queues());
}

TEST(Client, GivesBackWhatItWasLentTooLate) {
  Network network;
  ASSERT_TRUE(network.client.submit({.queue = "q", .payload = "x"}));
  network.proxy.set({.holds_replies = true});
  const auto leased = network.client.lease({.worker = "w", .queues = {"q"}}, kToBeSent);
  ASSERT_FALSE(leased);
  EXPECT_EQ(leased.error().code, Errc::outcome_unknown);
  ASSERT_TRUE(eventually([&] { return network.direct.queues()->queues.at(0).leased == 1; }));
  network.proxy.set({});
  EXPECT_TRUE(eventually([&] { return network.direct.queues()->queues.at(0).waiting == 1; }));
}

// A LEASE that waits on the server, by a client that is told to stop it.
class WaitingLease {
 public:
  explicit WaitingLease(Network& network) : network_(network) {
    EXPECT_TRUE(eventually([&] { return network_.proxy.request_bytes() > 100; }));
  }
  ~WaitingLease() { stop(); }
  WaitingLease(const WaitingLease&) = delete;
  WaitingLease& operator=(const WaitingLease&) = delete;

  void stop() { thread_.request_stop(); }
  Result<std::vector<Leased>> outcome() { return leased_.get(); }

 private:
  Network& network_;
  std::promise<Result<std::vector<Leased>>> promise_;
  std::future<Result<std::vector<Leased>>> leased_ = promise_.get_future();
  std::jthread thread_{[this](const std::stop_token& stop) {
    promise_.set_value(
        network_.client.lease({.worker = "w", .queues = {"q"}, .ttl = minutes(5), .wait = minutes(1)}, stop));
  }};
};

TEST(Client, WithdrawsALeaseThatIsStopped) {
  Network network;
  WaitingLease lease(network);
  lease.stop();
  const auto leased = lease.outcome();
  EXPECT_EQ(leased ? Errc::conflict : leased.error().code, Errc::closed);
  const auto task = network.direct.submit({.queue = "q", .payload = "x"});
  ASSERT_TRUE(task);
  EXPECT_EQ(network.direct.get(task->task)->view.attempt, 0u);
}

TEST(Client, BringsWhatALeaseWasGrantedBeforeItWasStopped) {
  Network network;
  WaitingLease lease(network);
  network.proxy.set({.holds_replies = true});
  ASSERT_TRUE(network.direct.submit({.queue = "q", .payload = "x"}));
  ASSERT_TRUE(eventually([&] { return network.direct.queues()->queues.at(0).leased == 1; }));
  lease.stop();
  network.proxy.set({});
  const auto leased = lease.outcome();
  ASSERT_TRUE(leased) << leased.error().message;
  ASSERT_EQ(leased->size(), 1u);
  EXPECT_TRUE(network.direct.release(leased->front().held()));
}

TEST(Client, EndsEveryCallWhenItGoes) {
  Network network;
  Tally tally;
  {
    Client client(to(network.proxy.address()));
    ASSERT_TRUE(client.queues());
    network.proxy.set({.holds_replies = true});
    client.submit({.queue = "q", .payload = "x"}, tally.expects<Submitted>());
    ASSERT_TRUE(eventually([&] { return network.direct.queues()->queues.size() == 1; }));
    Client nowhere(to("127.0.0.1:1"));
    nowhere.submit({.queue = "q", .payload = "x"}, tally.expects<Submitted>());
    nowhere.lease({.worker = "w", .queues = {"q"}, .wait = seconds(5)}, tally.expects<std::vector<Leased>>());
  }
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"CLOSED", 2}, {"OUTCOME_UNKNOWN", 1}}));
}

// X3: what comes is no protocol, of another shape, or more than was asked for.
TEST(Client, EndsItsCallsWhateverAServerSays) {
  for (const std::string answer : {"hello\r\n", "+OK\r\n", "$999999999999\r\n", "*1\r\n", "_\r\n_\r\n",
                                   "%1\r\n+queues\r\n:1\r\n", "-\r\n", ">0\r\n", "", "\r\n"}) {
    ScriptedServer server([&](const Words& words) { return greeting_or(words, answer); });
    ClientOptions options = to(server.address());
    options.deadline = milliseconds(40);
    Client client(options);
    EXPECT_FALSE(client.queues()) << answer;
    EXPECT_FALSE(client.submit({.queue = "q"})) << answer;
    EXPECT_FALSE(client.lease({.worker = "w", .queues = {"q"}, .wait = milliseconds(1)})) << answer;
  }
}

}  // namespace
}  // namespace baton::client
