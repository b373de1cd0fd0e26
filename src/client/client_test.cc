// What may be asked of the client, against the real server.
#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/network.h"

namespace baton::client {
namespace {

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

}  // namespace
}  // namespace baton::client
