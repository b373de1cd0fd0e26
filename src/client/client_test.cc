// The client against the real server, and against what networks do.
#include "client/client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "tests/proxy.h"
#include "tests/scripted_server.h"
#include "tests/served.h"

namespace baton::client {
namespace {

ClientOptions to(const std::string& address) {
  return {.addresses = {address}, .backoff_min = milliseconds(5), .backoff_max = milliseconds(100)};
}

// A server, and a client that talks to it through a proxy.
struct Network {
  Served server{BATON_PROGRAM};
  Proxy proxy{server.port()};
  Client direct{to(server.address())};  // past the proxy
  Client client{to(proxy.address())};

  void restart() {
    server.kill();
    server.start();
    proxy.set_target(server.port());
    proxy.reset();
  }
};

// Waits for a number of callbacks, and counts how they came.
class Tally {
 public:
  template <class T>
  Callback<T> expects() {
    {
      const std::lock_guard lock(mutex_);
      ++open_;
    }
    return [this](Result<T> result) {
      const std::lock_guard lock(mutex_);
      ++came_[result ? "" : std::string(word(result.error().code))];
      --open_;
      changed_.notify_all();
    };
  }
  // How many came with which error; "" is none.
  std::map<std::string, int> wait() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return open_ == 0; }));
    return came_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int open_ = 0;
  std::map<std::string, int> came_;
};

TEST(Client, CarriesATaskThroughItsLife) {
  const Served server(BATON_PROGRAM);
  Client client(to(server.address()));

  const auto task = client.submit({.queue = "mail", .payload = std::string("hel\r\nlo\0", 8), .key = "k"});
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_FALSE(task->existed);
  EXPECT_TRUE(
      client.submit({.queue = "mail", .payload = std::string("hel\r\nlo\0", 8), .key = "k"})->existed);
  EXPECT_EQ(client.submit({.queue = "mail", .payload = "other", .key = "k"}).error().code, Errc::conflict);
  EXPECT_EQ(client.get("key:k")->view.state, "waiting");

  const auto leased = client.lease({.worker = "w", .queues = {"none", "mail"}});
  ASSERT_TRUE(leased) << leased.error().message;
  ASSERT_EQ(leased->size(), 1u);
  const Leased& held = leased->front();
  EXPECT_EQ(held.task, task->task);
  EXPECT_EQ(held.payload, std::string("hel\r\nlo\0", 8));
  EXPECT_EQ(held.attempt, 1u);
  EXPECT_EQ(client.get(task->task)->view.worker, "w");

  EXPECT_GT(*client.extend(held.held(), seconds(60)), seconds(30));
  const auto extended = client.extend_many({held.held(), {held.task, "1-1-1"}}, seconds(60));
  ASSERT_TRUE(extended) << extended.error().message;
  ASSERT_EQ(extended->size(), 2u);
  EXPECT_TRUE((*extended)[0]);
  EXPECT_EQ((*extended)[1].error().code, Errc::lease_unknown);

  const auto verdict = client.complete(held.held(), "sent");
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_FALSE(verdict->cancelled);
  EXPECT_EQ(verdict->outcome, "completed");
  const auto ended = client.wait(task->task, seconds(10));
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(ended->view.state, "completed");
  EXPECT_EQ(ended->result, "sent");
  EXPECT_EQ(client.get("1-1").error().code, Errc::not_found);
}

TEST(Client, HasEveryVerb) {
  const Served server(BATON_PROGRAM);
  Client client(to(server.address()));
  const auto take = [&] { return client.lease({.worker = "w", .queues = {"q"}})->at(0); };

  const auto many =
      client.submit_many({.queue = "q", .payloads = {"a", "b", "c"}, .options = {.max_failures = 2}});
  ASSERT_TRUE(many) << many.error().message;
  ASSERT_EQ(many->size(), 3u);
  const Leased a = take();
  EXPECT_EQ(client.release(a.held())->outcome, "released");
  const Leased again = take();  // another one: what is given back queues up anew
  const auto failed = client.fail(again.held(), {.reason = "no", .delay = milliseconds(1)});
  EXPECT_EQ(failed->outcome, "retried");
  EXPECT_GT(failed->retry_at.ms, 0);

  const Leased b = take();
  const auto next = client.complete_and_lease(b.held(), "done", {.worker = "w", .queues = {"q"}});
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->completed->outcome, "completed");
  ASSERT_EQ(next->tasks->size(), 1u);
  EXPECT_EQ(client.fail(next->tasks->front().held(), {.reason = "bad", .final = true})->outcome, "failed");

  const auto anew = client.requeue(next->tasks->front().task, "again");
  ASSERT_TRUE(anew) << anew.error().message;
  EXPECT_EQ(client.get(anew->task)->view.retry_of, next->tasks->front().task);
  EXPECT_TRUE(client.cancel(anew->task, "me", "not wanted"));
  EXPECT_EQ(client.get(anew->task)->view.dead_reason, "cancelled");

  EXPECT_EQ(*client.heartbeat({.worker = "w", .capacity = 2, .capabilities = {"gpu"}}), 0u);
  const auto workers = client.workers();
  ASSERT_TRUE(workers) << workers.error().message;
  ASSERT_EQ(workers->workers.size(), 1u);
  EXPECT_EQ(workers->workers.front().capacity, 2u);
  EXPECT_EQ(workers->workers.front().capabilities, "gpu");
  EXPECT_TRUE(workers->workers.front().silent_for);
  const auto stats = client.stats();
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_FALSE(stats->version.empty());
  EXPECT_EQ(stats->ns, "default");
  EXPECT_EQ(stats->in_namespace.completed, 1u);
  EXPECT_GT(stats->flushes, 0u);
  EXPECT_TRUE(client.pause("q"));
  auto queues = client.queues();
  ASSERT_EQ(queues->queues.size(), 1u);
  EXPECT_TRUE(queues->queues.front().paused);
  EXPECT_EQ(queues->queues.front().completed, 1u);
  EXPECT_EQ(queues->queues.front().failed, 1u);
  EXPECT_EQ(queues->queues.front().dead, 1u);
  EXPECT_TRUE(client.resume("q"));

  auto page = client.tasks({.queue = "q", .count = 2});
  ASSERT_EQ(page->tasks.size(), 2u);
  page = client.tasks({.queue = "q", .cursor = page->cursor});
  EXPECT_EQ(page->tasks.size(), 2u);
  EXPECT_EQ(page->cursor, 0u);
  EXPECT_EQ(client.tasks({.queue = "q", .state = "failed"})->tasks.size(), 1u);
  EXPECT_TRUE(client.tasks({.worker = "nobody"})->tasks.empty());
  EXPECT_TRUE(client.tasks({.older_than = hours(1)})->tasks.empty());
  EXPECT_EQ(*client.purge("q", 2), 2u);

  const auto picky = client.submit(
      {.queue = "picky", .options = {.priority = 9, .delay = milliseconds(1), .capabilities = {"gpu"}}});
  ASSERT_TRUE(picky) << picky.error().message;
  const auto first = client.queues({.count = 1});
  ASSERT_EQ(first->queues.size(), 1u);
  EXPECT_EQ(client.queues({.cursor = first->cursor})->queues.at(0).queue, "q");
  EXPECT_TRUE(client.lease({.worker = "x", .queues = {"picky"}})->empty());
  EXPECT_EQ(client.lease({.worker = "x", .queues = {"picky"}, .wait = seconds(20), .capabilities = {"gpu"}})
                ->size(),
            1u);
}

TEST(Client, RepeatsManySubmissionsThatHaveKeys) {
  Network network;
  ASSERT_TRUE(network.client.queues());
  const SubmitMany keyed{.queue = "q", .payloads = {"a", "b"}, .keys = {"ka", "kb"}};
  network.proxy.set({.cut_replies_after = 3});
  const auto many = network.client.submit_many(keyed);
  ASSERT_TRUE(many) << many.error().message;
  EXPECT_EQ(network.direct.queues()->queues.at(0).waiting, 2u);
  EXPECT_EQ(network.direct.get("key:kb")->payload, "b");
}

TEST(Client, StaysInItsNamespace) {
  const Served server(BATON_PROGRAM);
  ClientOptions options = to(server.address());
  options.ns = "one";
  Client one(options);
  options.ns = "two";
  Client two(options);
  const auto task = one.submit({.queue = "q", .payload = "x"});
  ASSERT_TRUE(task);
  EXPECT_EQ(two.get(task->task).error().code, Errc::not_found);
  EXPECT_TRUE(one.get(task->task));
}

// Many threads, many calls, one connection.
TEST(Client, TakesThousandsOfCallsFromManyThreads) {
  Network network;
  constexpr int kThreads = 8;
  constexpr int kEach = 1500;
  std::mutex mutex;
  std::set<std::string> tasks;
  Tally tally;
  {
    std::list<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kEach; ++i) {
          auto done = tally.expects<Submitted>();
          network.client.submit({.queue = "q", .payload = std::to_string(thread * kEach + i)},
                                [&, done](Result<Submitted> submitted) {
                                  if (submitted) {
                                    const std::lock_guard lock(mutex);
                                    tasks.insert(submitted->task);
                                  }
                                  done(std::move(submitted));
                                });
        }
      });
    }
  }
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"", kThreads * kEach}}));
  EXPECT_EQ(tasks.size(), static_cast<std::size_t>(kThreads * kEach));
  EXPECT_EQ(network.client.queues()->queues.at(0).waiting, static_cast<std::uint64_t>(kThreads * kEach));
  EXPECT_EQ(network.proxy.connections(), 1u);
}

TEST(Client, MakesCallersWaitWhenTooMuchIsUnderWay) {
  const Served server(BATON_PROGRAM);
  ClientOptions options = to(server.address());
  options.calls_max = 3;
  Client client(options);
  Tally tally;
  for (int i = 0; i < 500; ++i) client.submit({.queue = "q", .payload = "x"}, tally.expects<Submitted>());
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"", 500}}));
}

TEST(Client, LetsNothingWaitBehindACallThatWaitsOnPurpose) {
  const Served server(BATON_PROGRAM);
  Client client(to(server.address()));
  Tally tally;
  client.lease({.worker = "a", .queues = {"later"}, .wait = seconds(60)},
               tally.expects<std::vector<Leased>>());
  client.lease({.worker = "b", .queues = {"later"}, .wait = seconds(60)},
               tally.expects<std::vector<Leased>>());
  const auto task = client.submit({.queue = "now", .payload = "x"}, seconds(10));
  ASSERT_TRUE(task) << task.error().message;
  client.wait(task->task, seconds(10), tally.expects<Task>());
  const auto leased = client.lease({.worker = "c", .queues = {"now"}, .wait = seconds(10)});
  ASSERT_TRUE(leased && leased->size() == 1u);
  EXPECT_TRUE(client.complete(leased->front().held(), ""));
  EXPECT_TRUE(client.submit_many({.queue = "later", .payloads = {"1", "2"}}));
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"", 3}}));
}

TEST(Client, AnswersOnItsOwnThreadWhereNothingMayBlock) {
  const Served server(BATON_PROGRAM);
  Client client(to(server.address()));
  Tally tally;
  auto second = tally.expects<Task>();
  std::atomic<bool> refused = false;
  auto first = tally.expects<Submitted>();
  client.submit({.queue = "q", .payload = "x"}, [&](Result<Submitted> task) {
    refused = client.get(task->task).error().code == Errc::invalid_request;
    client.get(task->task, second);
    first(std::move(task));
  });
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"", 2}}));
  EXPECT_TRUE(refused);
}

TEST(Client, RefusesWhatTheCoordinatorWouldChokeOn) {
  const Served server(BATON_PROGRAM);
  Client client(to(server.address()));
  EXPECT_EQ(client.submit({.queue = "q", .payload = std::string(5 << 20, 'x')}).error().code,
            Errc::too_large);
  EXPECT_EQ(client.submit({.queue = "q", .payload = std::string(1 << 20, 'x')}).error().code,
            Errc::too_large);
  EXPECT_EQ(client.submit_many({.queue = "q", .payloads = std::vector<std::string>(1025, "x")}).error().code,
            Errc::too_large);
  EXPECT_EQ(client.submit({.queue = "no name", .payload = "x"}).error().code, Errc::invalid_request);
  EXPECT_EQ(client.lease({.worker = "w"}).error().code, Errc::invalid_request);
  EXPECT_TRUE(client.submit({.queue = "q", .payload = std::string(256 * 1024, 'x')}));
}

TEST(Client, FailsEveryCallOverOptionsThatMakeNoSense) {
  for (const ClientOptions& options : {ClientOptions{.addresses = {"nonsense"}},
                                       ClientOptions{.addresses = {}}, ClientOptions{.calls_max = 0}}) {
    Client client(options);
    EXPECT_EQ(client.get("a-1").error().code, Errc::invalid_request);
    EXPECT_EQ(client.wait("a-1", seconds(1)).error().code, Errc::invalid_request);
  }
}

// A port that nobody listens on, and a server on the second address.
TEST(Client, TriesItsAddressesInTurn) {
  Served server(BATON_PROGRAM);
  Proxy dead(server.port());
  dead.set({.refuses = true});
  Proxy alive(server.port());
  ClientOptions options = to(dead.address());
  options.addresses.push_back(alive.address());
  options.addresses.emplace_back("127.0.0.1:1");
  Client client(options);
  EXPECT_TRUE(client.submit({.queue = "q", .payload = "x"}));
  EXPECT_TRUE(client.lease({.worker = "w", .queues = {"q"}, .wait = milliseconds(1)}));
  // They change their parts.
  dead.set({});
  alive.set({.refuses = true});
  alive.reset();
  EXPECT_TRUE(client.queues());
  EXPECT_TRUE(client.submit({.queue = "q", .payload = "x"}));
}

TEST(Client, SaysThatNobodyCanBeReached) {
  Client client(to("127.0.0.1:1"));
  const auto submitted = client.submit({.queue = "q", .payload = "x"}, milliseconds(50));
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, Errc::unavailable);
  EXPECT_NE(submitted.error().message.find("127.0.0.1:1"), std::string::npos) << submitted.error().message;
  EXPECT_EQ(client.wait("a-1", milliseconds(1), milliseconds(50)).error().code, Errc::unavailable);
}

TEST(Client, WaitsForAServerThatIsNotThereYet) {
  Network network;
  network.proxy.set({.refuses = true});
  Tally tally;
  network.client.submit({.queue = "q", .payload = "x"}, tally.expects<Submitted>());
  ASSERT_TRUE(eventually([&] { return network.proxy.connections() >= 3; }));
  network.proxy.set({});
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"", 1}}));
}

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
  EXPECT_EQ(network.client.submit({.queue = "q", .payload = "x"}, milliseconds(30)).error().code,
            Errc::outcome_unknown);
  EXPECT_EQ(network.client.wait("a-1", milliseconds(5), milliseconds(30)).error().code, Errc::unavailable);
  network.proxy.set({});
  EXPECT_TRUE(network.client.queues());
}

TEST(Client, GivesBackWhatItWasLentTooLate) {
  Network network;
  ASSERT_TRUE(network.client.submit({.queue = "q", .payload = "x"}));
  network.proxy.set({.holds_replies = true});
  const auto leased = network.client.lease({.worker = "w", .queues = {"q"}}, milliseconds(30));
  ASSERT_FALSE(leased);
  EXPECT_EQ(leased.error().code, Errc::outcome_unknown);
  ASSERT_TRUE(eventually([&] { return network.direct.queues()->queues.at(0).leased == 1; }));
  network.proxy.set({});
  EXPECT_TRUE(eventually([&] { return network.direct.queues()->queues.at(0).waiting == 1; }));
}

// Half open: nothing comes, and no reset either.
TEST(Client, LeavesAConnectionThatHasFallenSilent) {
  Network network;
  ClientOptions options = to(network.proxy.address());
  options.silence_max = milliseconds(50);
  options.connect_timeout = milliseconds(50);
  Client client(options);
  ASSERT_TRUE(client.queues());
  network.proxy.set({.holds_requests = true, .holds_replies = true});
  Tally tally;
  client.queues({}, tally.expects<QueuePage>());
  client.submit({.queue = "q", .payload = "x"}, tally.expects<Submitted>());
  client.wait("key:none", milliseconds(1), tally.expects<Task>());
  ASSERT_TRUE(eventually([&] { return network.proxy.connections() >= 4; }));  // it tries others
  network.proxy.set({});
  network.proxy.reset();
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"", 1}, {"OUTCOME_UNKNOWN", 1}, {"NOT_FOUND", 1}}));
}

TEST(Client, GoesOnAfterTheServerStoodStill) {
  Network network;
  ASSERT_TRUE(network.client.queues());
  network.server.pause();
  Tally tally;
  for (int i = 0; i < 100; ++i)
    network.client.submit({.queue = "q", .payload = "x"}, tally.expects<Submitted>());
  network.server.go_on();
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"", 100}}));
}

TEST(Client, ReadsRepliesByteByByteAndLate) {
  Network network;
  network.proxy.set({.delay_ms = 2, .piece_bytes = 1});
  const auto task = network.client.submit({.queue = "q", .payload = std::string(500, 'x'), .key = "k"});
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ(network.client.get(task->task)->payload, std::string(500, 'x'));
}

// Wherever a request or a reply is cut, a call that may be repeated comes to its end, once.
TEST(Client, SurvivesACutAtEveryByte) {
  Network network;
  const auto get = [&] { return network.client.get("key:k"); };
  ASSERT_TRUE(network.client.submit({.queue = "q", .payload = "0123456789", .key = "k"}));
  ASSERT_TRUE(get());
  const std::uint64_t requests = network.proxy.request_bytes();
  const std::uint64_t replies = network.proxy.reply_bytes();
  ASSERT_TRUE(get());
  const auto request = static_cast<std::int64_t>(network.proxy.request_bytes() - requests);
  const auto reply = static_cast<std::int64_t>(network.proxy.reply_bytes() - replies);
  ASSERT_GT(request, 10);
  ASSERT_GT(reply, 100);
  for (std::int64_t at = 0; at < request + reply; ++at) {
    network.proxy.set(at < request ? ProxyFaults{.cut_requests_after = at}
                                   : ProxyFaults{.cut_replies_after = at - request});
    const auto task = get();
    ASSERT_TRUE(task) << at << ": " << task.error().message;
    EXPECT_EQ(task->payload, "0123456789");
  }
  EXPECT_GE(network.proxy.cuts(), static_cast<std::uint64_t>(request + reply - 1));
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

using Words = std::vector<std::string>;

std::string greeting_or(const Words& words, const std::string& other) {
  return words[0] == "HELLO" || words[0] == "USE" || words[0] == "AUTH" ? "+OK\r\n" : other;
}

TEST(Client, SaysWhoItIsBeforeAnythingElse) {
  std::mutex mutex;
  std::vector<Words> heard;
  ScriptedServer server([&](const Words& words) {
    const std::lock_guard lock(mutex);
    heard.push_back(words);
    return greeting_or(words, "%1\r\n+queues\r\n*0\r\n");
  });
  ClientOptions options = to(server.address());
  options.user = "alice";
  options.token = "secret";
  options.ns = "mail";
  Client client(options);
  EXPECT_TRUE(client.queues());
  const std::lock_guard lock(mutex);
  EXPECT_EQ(heard,
            (std::vector<Words>{
                {"AUTH", "alice", "secret"}, {"HELLO", "3"}, {"USE", "mail"}, {"QUEUES", "COUNT", "1000"}}));
}

// The server's own idea of who may come in.
TEST(Client, IsLetInWithItsToken) {
  const auto made =
      crash::run({.command = {BATON_PROGRAM, "token", "alice", "--allow", "mail=submit,query"}});
  ASSERT_EQ(made.lines.size(), 1u) << made.errors;
  const std::size_t at = made.errors.find("baton_");
  ASSERT_NE(at, std::string::npos);
  const TemporaryDirectory place;
  std::ofstream(place.path() + "/tokens") << made.lines[0] << "\n";
  const Served server(BATON_PROGRAM, {"--tokens", place.path() + "/tokens"});

  ClientOptions options = to(server.address());
  options.ns = "mail";
  Client stranger(options);
  EXPECT_EQ(stranger.queues().error().code, Errc::permission_denied);
  options.user = "alice";
  options.token = "baton_wrong";
  Client wrong(options);
  EXPECT_EQ(wrong.queues().error().code, Errc::permission_denied);
  options.token = made.errors.substr(at, made.errors.find_first_of(" \r\n", at) - at);
  Client alice(options);
  EXPECT_TRUE(alice.submit({.queue = "q", .payload = "x"}));
  EXPECT_EQ(alice.lease({.worker = "w", .queues = {"q"}}).error().code, Errc::permission_denied);
}

// A wrong token stays wrong: nobody waits for his deadline to learn it.
TEST(Client, FailsAtOnceWhenItIsNotLetIn) {
  ScriptedServer server([&](const Words& words) -> std::string {
    return words[0] == "AUTH" ? "-WRONGPASS no such token\r\n" : "-NOAUTH who are you?\r\n";
  });
  ClientOptions options = to(server.address());
  options.token = "wrong";
  options.deadline = hours(1);
  Client client(options);
  EXPECT_EQ(client.queues().error(), (Error{Errc::permission_denied, "WRONGPASS no such token"}));
  EXPECT_EQ(client.wait("a-1", seconds(1)).error().code, Errc::permission_denied);
}

// One that is full today may have room tomorrow.
TEST(Client, TriesAgainWhenItIsTurnedAwayForNow) {
  std::atomic<int> turned_away = 0;
  ScriptedServer server([&](const Words& words) -> std::string {
    if (words[0] == "HELLO" && ++turned_away < 4) return "-EXHAUSTED too many connections\r\n";
    return greeting_or(words, "%1\r\n+queues\r\n*0\r\n");
  });
  Client client(to(server.address()));
  EXPECT_TRUE(client.queues());
  EXPECT_EQ(turned_away, 4);
}

TEST(Client, SaysItAgainToTheNextCoordinatorWhenOneIsStopping) {
  std::atomic<int> asked = 0;
  ScriptedServer server([&](const Words& words) -> std::string {
    if (words[0] == "QUEUES" && ++asked < 3) return "-CLOSED the coordinator is stopping\r\n";
    if (words[0] == "SUBMIT") return "-CLOSED the coordinator is stopping\r\n";
    return greeting_or(words, "%1\r\n+queues\r\n*0\r\n");
  });
  Client client(to(server.address()));
  EXPECT_TRUE(client.queues());
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(client.submit({.queue = "q"}).error().code, Errc::outcome_unknown);
}

TEST(Client, TellsItsListenersOfLostLeases) {
  ScriptedServer server([&](const Words& words) {
    return greeting_or(words, ">1\r\n+other\r\n>3\r\n+lost\r\n+a-1\r\n+b-2\r\n%1\r\n+queues\r\n*0\r\n");
  });
  Client client(to(server.address()));
  std::vector<Held> lost;  // the client's thread is done with it when the call is
  const auto id = client.listen([&](const Held& held) { lost.push_back(held); });
  EXPECT_TRUE(client.queues());
  EXPECT_EQ(lost, (std::vector<Held>{{"a-1", "b-2"}}));
  client.stop_listening(id);
  EXPECT_TRUE(client.queues());
  EXPECT_EQ(lost.size(), 1u);
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
