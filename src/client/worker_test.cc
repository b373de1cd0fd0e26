// Workers on the real server.
#include "client/worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "client/call.h"
#include "tests/proxy.h"
#include "tests/scripted_server.h"
#include "tests/served.h"

namespace baton::client {
namespace {

ClientOptions to(const std::string& address) {
  return {.addresses = {address}, .backoff_min = milliseconds(5), .backoff_max = milliseconds(100)};
}

struct Site {
  Served server{BATON_PROGRAM};
  Client client{to(server.address())};

  std::string submit(const std::string& payload, const TaskOptions& options = {},
                     const std::string& queue = "q") {
    const auto submitted = client.submit({.queue = queue, .payload = payload, .options = options});
    EXPECT_TRUE(submitted) << submitted.error().message;
    return submitted ? submitted->task : std::string();
  }
  Task end_of(const std::string& task) {
    Result<Task> seen = failure(Errc::not_found, "not asked yet");
    const auto ended = [&] {
      seen = client.wait(task, seconds(1));
      return !seen || seen->view.has_ended();
    };
    EXPECT_TRUE(eventually(ended));
    EXPECT_TRUE(seen) << seen.error().message;
    return seen ? *seen : Task{};
  }
  std::unique_ptr<Worker> worker(WorkerOptions options, Client* through = nullptr) {
    if (options.name.empty()) options.name = "w";
    options.wait = std::min(options.wait, milliseconds(100));  // so that draining is quick
    auto worker = Worker::start(through != nullptr ? *through : client, std::move(options));
    EXPECT_TRUE(worker) << worker.error().message;
    return std::move(*worker);
  }
};

// Holds handlers until it is opened.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // False if it was the stop token that let it go.
  bool pass(const std::stop_token& stop) {
    const std::stop_callback wakes(stop, [&] {
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_ || stop.stop_requested(); });
    return open_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// What a scripted server says to LEASE.
const std::string kNoTasks = "%2\r\n+lsn\r\n:1\r\n+tasks\r\n*0\r\n";
std::string lease_of_a_task(std::int64_t ttl_ms) {
  return "%2\r\n+lsn\r\n:1\r\n+tasks\r\n*1\r\n%6\r\n+task\r\n+a-1\r\n+lease\r\n+b-2\r\n+fence\r\n+b\r\n"
         "+attempt\r\n:1\r\n+ttl_ms\r\n:" +
         std::to_string(ttl_ms) + "\r\n+payload\r\n+x\r\n";
}

Result<std::string> echo(const Job& job, const std::stop_token&) { return "did " + job.payload; }

TEST(Worker, DoesWhatIsSubmitted) {
  Site site;
  const auto worker = site.worker({.handlers = {{"q", echo}}});
  const Task ended = site.end_of(site.submit("this"));
  EXPECT_EQ(ended.view.state, "completed");
  EXPECT_EQ(ended.result, "did this");
}

TEST(Worker, HasAHandlerForEachQueue) {
  Site site;
  const auto naming = [](const std::string& name) {
    return [name](const Job& job, const std::stop_token&) -> Result<std::string> {
      return name + job.queue + job.payload;
    };
  };
  const auto worker = site.worker({.slots = 2, .handlers = {{"a", naming("A")}, {"b", naming("B")}}});
  const std::string a = site.submit("1", {}, "a");
  const std::string b = site.submit("2", {}, "b");
  EXPECT_EQ(site.end_of(a).result, "Aa1");
  EXPECT_EQ(site.end_of(b).result, "Bb2");
}

TEST(Worker, IsRefusedWithOptionsThatMakeNoSense) {
  Client client(to("127.0.0.1:1"));
  std::map<std::string, Handler> many;
  for (int i = 0; i < 17; ++i) many["q" + std::to_string(i)] = echo;
  EXPECT_FALSE(Worker::start(client, {.name = "w"}));
  EXPECT_FALSE(Worker::start(client, {.name = "w", .handlers = many}));
  EXPECT_FALSE(Worker::start(client, {.name = "w", .slots = 0, .handlers = {{"q", echo}}}));
  EXPECT_FALSE(Worker::start(client, {.name = "w", .slots = kSlotsMax + 1, .handlers = {{"q", echo}}}));
  EXPECT_FALSE(Worker::start(client, {.handlers = {{"q", echo}}}));
  EXPECT_FALSE(Worker::start(client, {.name = "w", .handlers = {{"q", echo}}, .ttl = {}}));
}

// Many tasks through several slots of two workers: each is begun once, and completed once.
TEST(Worker, DoesManyTasksExactlyOnce) {
  Site site;
  constexpr int kTasks = 3000;
  std::mutex mutex;
  std::multiset<std::string> done;
  std::atomic<int> at_once = 0;
  std::atomic<int> most = 0;
  const Handler note = [&](const Job& job, const std::stop_token&) -> Result<std::string> {
    const int now = ++at_once;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    {
      const std::lock_guard lock(mutex);
      done.insert(job.payload);
    }
    --at_once;
    return job.payload;
  };
  std::multiset<std::string> expected;
  for (int first = 0; first < kTasks; first += 500) {
    std::vector<std::string> payloads;
    for (int i = first; i < first + 500; ++i) payloads.push_back(std::to_string(i));
    expected.insert(payloads.begin(), payloads.end());
    ASSERT_TRUE(site.client.submit_many({.queue = "q", .payloads = payloads}));
  }
  const auto one = site.worker({.name = "one", .slots = 4, .handlers = {{"q", note}}});
  const auto two = site.worker({.name = "two", .slots = 4, .handlers = {{"q", note}}});
  EXPECT_TRUE(eventually([&] { return site.client.queues()->queues.at(0).completed == kTasks; }));
  one->drain();
  two->drain();
  EXPECT_EQ(done, expected);
  EXPECT_LE(most, 8);
  EXPECT_EQ(one->counts().completed + two->counts().completed, static_cast<std::uint64_t>(kTasks));
  EXPECT_EQ(one->counts().begun + two->counts().begun, static_cast<std::uint64_t>(kTasks));
}

TEST(Worker, FailsTheAttemptOfAHandlerThatThrows) {
  Site site;
  const auto worker =
      site.worker({.handlers = {{"q", [](const Job& job, const std::stop_token&) -> Result<std::string> {
                                   if (job.payload == "int") throw 7;
                                   throw std::runtime_error("no luck");
                                 }}}});
  const TaskOptions once{.max_failures = 1};
  const Task ended = site.end_of(site.submit("x", once));
  EXPECT_EQ(ended.view.state, "failed");
  EXPECT_NE(ended.reason.find("no luck"), std::string::npos) << ended.reason;
  EXPECT_EQ(site.end_of(site.submit("int", once)).view.state, "failed");
  worker->drain();
  EXPECT_EQ(worker->counts().failed, 2u);
}

TEST(Worker, FailsForGoodOrForNowByTheKindOfTheError) {
  Site site;
  const auto worker =
      site.worker({.handlers = {{"q", [](const Job& job, const std::stop_token&) -> Result<std::string> {
                                   if (job.payload == "bad") return failure(Errc::invalid_request, "bad");
                                   if (job.attempt < 3) return failure(Errc::io_failed, "not yet");
                                   return "at last";
                                 }}}});
  const TaskOptions soon{.backoff = milliseconds(1), .jitter_percent = 0};
  const std::string bad = site.submit("bad", soon);
  const std::string good = site.submit("good", soon);
  const Task failed = site.end_of(bad);
  EXPECT_EQ(failed.view.state, "failed");
  EXPECT_EQ(failed.view.attempt, 1u);
  EXPECT_EQ(failed.reason, "bad");
  const Task done = site.end_of(good);
  EXPECT_EQ(done.result, "at last");
  EXPECT_EQ(done.view.attempt, 3u);
}

TEST(Worker, FailsATaskWhoseResultIsTooLarge) {
  Site site;
  const auto worker =
      site.worker({.handlers = {{"q", [](const Job& job, const std::stop_token&) -> Result<std::string> {
                                   return std::string(job.payload == "huge" ? 5 << 20 : 1 << 20, 'x');
                                 }}}});
  EXPECT_EQ(site.end_of(site.submit("large")).view.state, "failed");
  EXPECT_EQ(site.end_of(site.submit("huge")).view.state, "failed");
}

// Longer than its lease, which is extended all the while.
TEST(Worker, KeepsALeaseForAsLongAsTheHandlerNeeds) {
  Site site;
  Gate gate;
  const auto worker =
      site.worker({.handlers = {{"q",
                                 [&](const Job&, const std::stop_token& stop) -> Result<std::string> {
                                   return std::string(gate.pass(stop) ? "kept" : "lost");
                                 }}},
                   .ttl = seconds(2)});
  const std::string task = site.submit("x");
  ASSERT_TRUE(eventually([&] { return site.client.get(task)->view.state == "leased"; }));
  const Instant granted = site.client.get(task)->view.since;
  ASSERT_TRUE(eventually([&] { return site.client.get(task)->view.lease_expiry > granted + seconds(5); }));
  EXPECT_EQ(site.client.get(task)->view.attempt, 1u);
  gate.open();
  const Task ended = site.end_of(task);
  EXPECT_EQ(ended.result, "kept");
  EXPECT_EQ(ended.view.attempt, 1u);
}

TEST(Worker, StopsTheHandlerOfACancelledTask) {
  Site site;
  Gate gate;
  std::atomic<bool> stopped = false;
  const auto worker =
      site.worker({.handlers = {{"q",
                                 [&](const Job&, const std::stop_token& stop) -> Result<std::string> {
                                   stopped = !gate.pass(stop);
                                   return "nobody wants it";
                                 }}},
                   .ttl = hours(1)});  // it hears of it long before it would ask for more time
  const std::string task = site.submit("x");
  ASSERT_TRUE(eventually([&] { return worker->counts().begun == 1; }));
  ASSERT_TRUE(site.client.cancel(task));
  EXPECT_TRUE(eventually([&] { return stopped.load(); }));
  EXPECT_TRUE(eventually([&] { return worker->counts().lost == 1; }));
  EXPECT_EQ(site.client.get(task)->view.state, "dead");
}

// The network is gone for longer than the lease lasts. Somebody else does the task; the handler is told to
// stop, and what it says in the end does not count.
TEST(Worker, StopsTheHandlerOfALostLease) {
  Site site;
  Proxy proxy(site.server.port());
  Client cut_off(to(proxy.address()));
  Gate gate;
  std::atomic<bool> stopped = false;
  const auto first =
      site.worker({.name = "first",
                   .handlers = {{"q",
                                 [&](const Job&, const std::stop_token& stop) -> Result<std::string> {
                                   stopped = !gate.pass(stop);
                                   return "first";
                                 }}},
                   .ttl = seconds(2)},
                  &cut_off);
  const std::string task = site.submit("x");
  ASSERT_TRUE(eventually([&] { return first->counts().begun == 1; }));
  proxy.set({.refuses = true});
  proxy.reset();
  const auto second = site.worker({.name = "second", .handlers = {{"q", echo}}});
  const Task ended = site.end_of(task);
  EXPECT_EQ(ended.result, "did x");
  EXPECT_EQ(ended.view.attempt, 2u);
  EXPECT_TRUE(eventually([&] { return stopped.load(); }));
  proxy.set({});
  EXPECT_TRUE(eventually([&] { return first->counts().lost == 1; }));
  EXPECT_EQ(site.client.get(task)->result, "did x");
  EXPECT_EQ(first->counts().completed, 0u);
}

// The lease may have begun as soon as it was asked for, and the answer took its time.
TEST(Worker, HoldsNoLongerThanItsTimeFromWhenItAsked) {
  constexpr std::int64_t kTtl = 1500, kLate = 1000;
  std::atomic<std::int64_t> asked_at = 0, stopped_at = 0;
  ScriptedServer server([&](const std::vector<std::string>& words) -> std::string {
    if (words[0] == "LEASE" && asked_at == 0) {
      asked_at = now_ms();
      eventually([&] { return now_ms() >= asked_at + kLate; });
      return lease_of_a_task(kTtl);
    }
    if (words[0] == "LEASE") return kNoTasks;
    if (words[0] == "EXTENDMANY") return "-EXHAUSTED not now\r\n";
    return words[0] == "HEARTBEAT" ? "%1\r\n+leases\r\n:0\r\n" : "+OK\r\n";
  });
  Client client(to(server.address()));
  Gate gate;
  auto worker = Worker::start(client, {.name = "w",
                                       .handlers = {{"q",
                                                     [&](const Job&, const std::stop_token& stop) {
                                                       EXPECT_FALSE(gate.pass(stop));
                                                       stopped_at = now_ms();
                                                       return Result<std::string>("x");
                                                     }}},
                                       .ttl = milliseconds(kTtl)});
  ASSERT_TRUE(worker);
  ASSERT_TRUE(eventually([&] { return stopped_at > 0; }));
  EXPECT_LT(stopped_at - asked_at, kTtl + kLate);
}

TEST(Worker, StopsAHandlerWhenTheCoordinatorSaysThatItsLeaseIsLost) {
  std::atomic<bool> begun = false;
  std::atomic<int> leases = 0;
  ScriptedServer server([&](const std::vector<std::string>& words) -> std::string {
    if (words[0] == "LEASE" && leases++ == 0) return lease_of_a_task(60'000);
    if (words[0] == "LEASE") {
      eventually([&] { return begun.load(); });
      return ">3\r\n+lost\r\n+a-1\r\n+b-2\r\n" + kNoTasks;
    }
    return words[0] == "HEARTBEAT" ? "%1\r\n+leases\r\n:0\r\n" : "+OK\r\n";
  });
  Client client(to(server.address()));
  Gate gate;
  auto worker = Worker::start(
      client, {.name = "w",
               .slots = 2,
               .handlers = {{"q",
                             [&](const Job&, const std::stop_token& stop) -> Result<std::string> {
                               begun = true;
                               EXPECT_FALSE(gate.pass(stop));
                               return "x";
                             }}},
               .ttl = seconds(60),
               .wait = milliseconds(10)});
  ASSERT_TRUE(worker);
  EXPECT_TRUE(eventually([&] { return (*worker)->counts().lost == 1; }));
}

// The news may be read before the task that came just before it is in a slot's hands.
TEST(Worker, DoesNotBeginWhatWasLostAsItCame) {
  std::atomic<int> leases = 0;
  ScriptedServer server([&](const std::vector<std::string>& words) -> std::string {
    if (words[0] == "LEASE" && leases++ == 0)
      return lease_of_a_task(60'000) + ">3\r\n+lost\r\n+a-1\r\n+b-2\r\n";
    if (words[0] == "LEASE") return kNoTasks;
    return words[0] == "HEARTBEAT" ? "%1\r\n+leases\r\n:0\r\n" : "+OK\r\n";
  });
  Client client(to(server.address()));
  Gate gate;
  auto worker = Worker::start(
      client, {.name = "w",
               .handlers = {{"q",
                             [&](const Job&, const std::stop_token& stop) -> Result<std::string> {
                               EXPECT_FALSE(gate.pass(stop));  // it may have begun before the news was here
                               return "x";
                             }}},
               .ttl = seconds(60),
               .wait = milliseconds(10)});
  ASSERT_TRUE(worker);
  EXPECT_TRUE(eventually([&] { return (*worker)->counts().lost == 1; }, 15'000));
  gate.open();
}

// X2: within the answer to NEXT each part has an outcome of its own.
TEST(Worker, TellsAResultAgainThatAStoppingServerDidNotTake) {
  std::atomic<int> leases = 0;
  ScriptedServer server([&](const std::vector<std::string>& words) -> std::string {
    if (words[0] == "LEASE") return leases++ == 0 ? lease_of_a_task(60'000) : kNoTasks;
    if (words[0] == "NEXT")
      return "%3\r\n+lsn\r\n:1\r\n+completed\r\n-CLOSED it stops\r\n+tasks\r\n-CLOSED it stops\r\n";
    if (words[0] == "COMPLETE")
      return "%3\r\n+lsn\r\n:1\r\n+status\r\n+COMMITTED\r\n+outcome\r\n+completed\r\n";
    return words[0] == "HEARTBEAT" ? "%1\r\n+leases\r\n:0\r\n" : "+OK\r\n";
  });
  Client client(to(server.address()));
  auto worker = Worker::start(
      client, {.name = "w", .handlers = {{"q", echo}}, .ttl = seconds(60), .wait = milliseconds(10)});
  ASSERT_TRUE(worker);
  EXPECT_TRUE(eventually([&] { return (*worker)->counts().completed + (*worker)->counts().lost == 1; }));
  EXPECT_EQ((*worker)->counts().completed, 1u);
}

// X2: nothing of it was taken. The work was done, and is not to be counted as failed for that.
TEST(Worker, TellsAResultAgainOfWhichOnlyHalfCame) {
  for (const bool asks_for_more : {false, true}) {
    std::atomic<int> leases = 0, told = 0, failures = 0;
    ScriptedServer server([&](const std::vector<std::string>& words) -> std::string {
      const std::string committed = "%3\r\n+lsn\r\n:1\r\n+status\r\n+COMMITTED\r\n+outcome\r\n+completed\r\n";
      if (words[0] == "LEASE") return leases++ == 0 ? lease_of_a_task(60'000) : kNoTasks;
      if (words[0] == "FAIL") ++failures;
      if (words[0] == "COMPLETE" || words[0] == "NEXT") {
        if (told++ == 0) return "-PROTOCOL_ERROR half a command\r\n";
        if (words[0] == "COMPLETE") return committed;
        return "%3\r\n+lsn\r\n:1\r\n+completed\r\n" + committed + "+tasks\r\n*0\r\n";
      }
      return words[0] == "HEARTBEAT" ? "%1\r\n+leases\r\n:0\r\n" : "+OK\r\n";
    });
    Client client(to(server.address()));
    auto worker = Worker::start(client, {.name = "w",
                                         .handlers = {{"q", echo}},
                                         .ttl = seconds(60),
                                         .wait = milliseconds(10),
                                         .tasks_max = asks_for_more ? 0u : 1u});
    ASSERT_TRUE(worker);
    EXPECT_TRUE(eventually([&] { return (*worker)->counts().completed == 1; }));
    EXPECT_EQ(told, 2);
    EXPECT_EQ(failures, 0);
  }
}

TEST(Worker, DrainsWhatItHasBegunAndTakesNothingMore) {
  Site site;
  Gate gate;
  auto worker =
      site.worker({.slots = 2,
                   .handlers = {{"q",
                                 [&](const Job& job, const std::stop_token& stop) -> Result<std::string> {
                                   gate.pass(stop);
                                   return job.payload;
                                 }}},
                   .wait = milliseconds(50)});
  for (int i = 0; i < 10; ++i) site.submit(std::to_string(i));
  ASSERT_TRUE(eventually([&] { return worker->counts().begun == 2; }));
  std::thread drains([&] { worker->drain(); });
  EXPECT_TRUE(eventually([&] { return worker->is_draining(); }));
  gate.open();
  drains.join();
  const WorkerCounts counts = worker->counts();
  EXPECT_EQ(counts.completed, 2u);
  EXPECT_EQ(counts.begun, 2u);
  const auto queue = site.client.queues()->queues.at(0);
  EXPECT_EQ(queue.leased, 0u);
  EXPECT_EQ(queue.completed, counts.completed);
  EXPECT_EQ(queue.waiting + queue.completed, 10u);
  worker->drain();  // again does nothing
  EXPECT_EQ(site.client.queues()->queues.at(0).completed, counts.completed);
}

// A task that comes while the worker drains is given back unharmed.
TEST(Worker, GivesBackWhatItDidNotBegin) {
  Site site;
  Proxy proxy(site.server.port());
  Client slow(to(proxy.address()));
  auto worker = Worker::start(slow, {.name = "w", .handlers = {{"q", echo}}, .wait = seconds(20)});
  ASSERT_TRUE(worker);
  // Its LEASE waits on the server; the task is granted, and the answer is held until the worker drains.
  ASSERT_TRUE(eventually([&] { return proxy.request_bytes() > 150; }));
  proxy.set({.holds_replies = true});
  const std::string task = site.submit("x");
  ASSERT_TRUE(eventually([&] { return site.client.get(task)->view.state == "leased"; }));
  std::thread drains([&] { (*worker)->drain(); });
  EXPECT_TRUE(eventually([&] { return (*worker)->is_draining(); }));
  proxy.set({});
  drains.join();
  EXPECT_EQ((*worker)->counts().released, 1u);
  EXPECT_EQ((*worker)->counts().begun, 0u);
  const Task back = *site.client.get(task);
  EXPECT_EQ(back.view.state, "waiting");
  EXPECT_EQ(back.view.failures, 0u);
}

// Nobody is granted a task only to give it back, for that would count as an attempt.
TEST(Worker, WithdrawsWhatItWaitsForWhenItDrains) {
  Site site;
  Proxy proxy(site.server.port());
  Client client(to(proxy.address()));
  auto worker =
      Worker::start(client, {.name = "w", .handlers = {{"q", echo}}, .ttl = minutes(5), .wait = minutes(1)});
  ASSERT_TRUE(worker);
  ASSERT_TRUE(eventually([&] { return proxy.request_bytes() > 150; }));  // its LEASE waits on the server
  const std::int64_t began = now_ms();
  (*worker)->drain();
  EXPECT_LT(now_ms() - began, 30'000);
  EXPECT_EQ(site.client.get(site.submit("x"))->view.attempt, 0u);
}

TEST(Worker, GivesBackATaskWhoseHandlerSaysClosed) {
  Site site;
  const std::string task = site.submit("x");
  const auto refuse = [](const Job&, const std::stop_token&) -> Result<std::string> {
    return failure(Errc::closed, "not now");
  };
  const auto worker = site.worker({.handlers = {{"q", refuse}}, .tasks_max = 1});
  EXPECT_TRUE(eventually([&] { return worker->counts().released == 1; }));
  const auto seen = site.client.get(task);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->view.state, "waiting");
  EXPECT_EQ(seen->view.failures, 0u);
}

TEST(Worker, DrainsOfItsOwnAccordAfterSoManyTasks) {
  Site site;
  for (int i = 0; i < 10; ++i) site.submit("x");
  std::atomic<bool> is_idle = false;
  const auto worker =
      site.worker({.slots = 8, .handlers = {{"q", echo}}, .tasks_max = 3, .idle = [&] { is_idle = true; }});
  EXPECT_TRUE(eventually([&] { return is_idle.load(); }));
  EXPECT_TRUE(worker->is_draining());
  worker->drain();
  EXPECT_EQ(worker->counts().completed, 3u);
  EXPECT_EQ(worker->counts().released, 0u);
  EXPECT_EQ(site.client.queues()->queues.at(0).waiting, 7u);
}

TEST(Worker, TellsWhenThereIsNothingToDo) {
  Site site;
  for (int i = 0; i < 10; ++i) site.submit("x");
  std::atomic<std::uint64_t> done_when_idle = 0;
  Worker* self = nullptr;
  std::atomic<bool> is_known = false;
  const auto worker = site.worker({.handlers = {{"q", echo}}, .idle = [&] {
                                     if (is_known) done_when_idle = self->counts().completed;
                                   }});
  self = worker.get();
  is_known = true;
  EXPECT_TRUE(eventually([&] { return done_when_idle == 10; }));
}

// X2: kill -9 of the server under a busy worker. Nothing is done twice, nothing is left.
TEST(Worker, GoesOnWhenTheServerIsKilledAndComesBack) {
  Site site;
  Proxy proxy(site.server.port());
  Client client(to(proxy.address()));
  constexpr int kTasks = 600;
  for (int i = 0; i < kTasks; ++i) {
    const std::string key = std::to_string(i);
    client.submit({.queue = "q", .payload = key, .key = key}, [](const Result<Submitted>&) {});
  }
  std::mutex mutex;
  std::map<std::string, int> begun;
  auto worker =
      site.worker({.slots = 4,
                   .handlers = {{"q",
                                 [&](const Job& job, const std::stop_token&) -> Result<std::string> {
                                   const std::lock_guard lock(mutex);
                                   ++begun[job.payload];
                                   return job.payload;
                                 }}},
                   .ttl = seconds(2),
                   .wait = milliseconds(100)},
                  &client);
  for (int round = 1; round <= 2; ++round) {
    ASSERT_TRUE(
        eventually([&] { return worker->counts().completed >= static_cast<std::uint64_t>(100 * round); }));
    site.server.kill();
    site.server.start();
    proxy.set_target(site.server.port());
    proxy.reset();
  }
  EXPECT_TRUE(eventually([&] {
    const auto queues = client.queues();
    return queues && !queues->queues.empty() && queues->queues.at(0).completed == kTasks;
  }));
  worker->drain();
  EXPECT_EQ(client.queues()->queues.at(0).completed, static_cast<std::uint64_t>(kTasks));
  EXPECT_EQ(begun.size(), static_cast<std::size_t>(kTasks));
  // Each word that a completion was recorded is about another task.
  EXPECT_LE(worker->counts().completed, static_cast<std::uint64_t>(kTasks));
}

// X7: whoever ends a worker does not wait for a coordinator that is not there.
TEST(Worker, EndsSoonWhenThereIsNobodyToAsk) {
  Site site;
  const auto worker =
      site.worker({.handlers = {{"q", [](const Job&, auto) { return Result<std::string>(""); }}}});
  site.end_of(site.submit("x"));
  site.server.kill();
  const auto began = now_ms();
  worker->drain();
  EXPECT_LT(now_ms() - began, 10'000) << "a request may take 30 s";
}

TEST(Worker, ReportsItsCapacity) {
  Site site;
  Gate gate;
  const auto worker =
      site.worker({.slots = 3,
                   .handlers = {{"q",
                                 [&](const Job&, const std::stop_token& stop) -> Result<std::string> {
                                   gate.pass(stop);
                                   return "x";
                                 }}},
                   .capabilities = {"gpu"}});
  for (int i = 0; i < 4; ++i) site.submit("x", {.capabilities = {"gpu"}});
  ASSERT_TRUE(eventually([&] { return worker->counts().begun == 3; }));
  // Another one under its name gets nothing: three is what it said it wants.
  ASSERT_TRUE(eventually([&] {
    auto more = site.client.lease({.worker = "w", .queues = {"q"}, .capabilities = {"gpu"}});
    if (!more || more->empty()) return true;
    EXPECT_TRUE(site.client.release(more->front().held()));  // its heartbeat has not come yet
    return false;
  }));
  gate.open();
}

}  // namespace
}  // namespace baton::client
