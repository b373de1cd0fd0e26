// What a worker has, and until when: it lets go of it by itself when nobody can tell it to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "pipeline/context.h"
#include "pipeline/directory_coordinator.h"
#include "pipeline/memory_coordinator.h"
#include "pipeline/redis_coordinator.h"
#include "pipeline/server_coordinator.h"
#include "tests/pipeline/company.h"
#include "tests/pipeline/redis_server.h"
#include "tests/served.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {
namespace {

// What is to end in real time, and on a machine that stands still for a moment not sooner than it should.
constexpr Duration kShortLease = seconds(3);

// One that stops answering heartbeats, without a word, when the test says so.
class Mute : public MemoryCoordinator {
 public:
  Mute(MemoryExchange& exchange, std::atomic<bool>& is_mute)
      : MemoryCoordinator(exchange), is_mute_(is_mute) {}
  Result<HeartbeatReply> send_heartbeat(const WorkerHeartbeat& heartbeat, std::stop_token stop) override {
    if (!is_mute_) return MemoryCoordinator::send_heartbeat(heartbeat, stop);
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, stop, [] { return false; });
    return failure(Errc::closed, "stopped");
  }

 private:
  std::atomic<bool>& is_mute_;
};

// Until whoever runs it wants no more of it.
void wait_for_stop(Context& context) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any().wait(lock, context.stop(), [] { return false; });
}

TEST(AWorkerThatIsCutOff, StopsWhatAnotherMayHaveBegun) {  // P4 P6
  std::atomic<bool> is_mute = false, was_stopped = false;
  Pipeline pipeline("cut off");
  pipeline.add("holds").exclusive("db").run([&](Context& context) {
    is_mute = true;
    wait_for_stop(context);
    was_stopped = true;
  });
  const Graph graph = *Graph::of(pipeline.definition());
  MemoryExchange exchange({.lease = kShortLease});
  MemoryCoordinator master(exchange);
  ASSERT_TRUE(master.open_run({.session = "m", .fingerprint = graph.fingerprint()}, {}));
  ASSERT_TRUE(master.enqueue_module({.module = "holds", .attempts_max = 1}, {}));
  WorkerOptions options = worker_options(1, {});
  options.unreachable_max = options.publish_max = hours(1);
  std::stop_source over;
  std::jthread worker([&] {
    Mute coordinator(exchange, is_mute);
    run_worker(graph, coordinator, options, over.get_token());
  });
  EXPECT_TRUE(eventually([&] { return was_stopped.load(); }));
  is_mute = false;
  over.request_stop();
}

// Both are its own, and there is one processor for them; both are lost while the first one runs.
TEST(AWorkerThatIsCutOff, DoesNotBeginWhatItHasLostMeanwhile) {  // P4 P6 P8
  std::atomic<bool> is_mute = false, is_decided = false;
  std::atomic<int> begun = 0, lost = 0;
  MemoryExchange exchange({.lease = kShortLease});
  MemoryCoordinator master(exchange);
  const auto has_both = [&] {
    const auto workers = master.get_registered_workers({});
    return workers && workers->size() == 1 && workers->front().current_modules.size() == 2;
  };
  Pipeline pipeline("cut off");
  for (const char* id : {"one", "other"}) {
    pipeline.add(id).hint(Hint::cpu).stop_grace(minutes(2)).run([&](Context&) {
      if (++begun > 1) {
        is_decided = true;
        return;
      }
      EXPECT_TRUE(eventually(has_both));
      is_mute = true;
      EXPECT_TRUE(eventually([&] { return lost == 2; }));
    });
  }
  const Graph graph = *Graph::of(pipeline.definition());
  ASSERT_TRUE(master.open_run({.session = "m", .fingerprint = graph.fingerprint()}, {}));
  for (const char* id : {"one", "other"})
    ASSERT_TRUE(master.enqueue_module({.module = id, .attempts_max = 1}, {}));
  WorkerOptions options = worker_options(1, {}, 2);
  options.processors = 1;
  options.notice = [&](const std::string& text) {
    if (text.ends_with("was lost; it is stopped")) ++lost;
    if (text.find("was stopped here") != std::string::npos) is_decided = true;
  };
  std::stop_source over;
  std::jthread worker([&] {
    Mute coordinator(exchange, is_mute);
    run_worker(graph, coordinator, options, over.get_token());
  });
  constexpr std::int64_t kLongerThanThatWaitsMs = 90'000;
  EXPECT_TRUE(eventually([&] { return is_decided.load(); }, kLongerThanThatWaitsMs));
  EXPECT_EQ(begun, 1);
  is_mute = false;
  over.request_stop();
}

TEST(AWorker, TellsSoonWhatItHasBegun) {  // P4
  MemoryExchange exchange({.lease = hours(3)});
  MemoryCoordinator master(exchange);
  const auto is_seen = [&] {
    const auto workers = master.get_registered_workers({});
    return workers && workers->size() == 1 &&
           workers->front().current_modules == std::vector<std::string>{"long"};
  };
  Pipeline pipeline("seen");
  pipeline.add("long").run([&](Context&) {
    EXPECT_TRUE(eventually(is_seen));
    EXPECT_TRUE(master.close_run("seen", {}));
  });
  const Graph graph = *Graph::of(pipeline.definition());
  ASSERT_TRUE(master.open_run({.session = "m", .fingerprint = graph.fingerprint()}, {}));
  ASSERT_TRUE(master.enqueue_module({.module = "long"}, {}));
  WorkerOptions options = worker_options(1, {});
  options.heartbeat = options.cancellation_poll = hours(1);
  MemoryCoordinator coordinator(exchange);
  run_worker(graph, coordinator, options);
}

TEST(AWorker, StopsWhatNobodyWaitsForAnyMore) {  // P7
  std::atomic<bool> has_begun = false;
  Pipeline pipeline("given up");
  pipeline.add("long").run([&](Context& context) {
    has_begun = true;
    wait_for_stop(context);
  });
  const Graph graph = *Graph::of(pipeline.definition());
  MemoryExchange exchange;
  MemoryCoordinator master(exchange);
  ASSERT_TRUE(master.open_run({.session = "m", .fingerprint = graph.fingerprint()}, {}));
  ASSERT_TRUE(master.enqueue_module({.module = "long"}, {}));
  std::jthread closes([&] {
    EXPECT_TRUE(eventually([&] { return has_begun.load(); }));
    EXPECT_TRUE(master.close_run("given up", {}));
  });
  MemoryCoordinator coordinator(exchange);
  const WorkerReport report = run_worker(graph, coordinator, worker_options(1, {}));
  EXPECT_EQ(report.end, WorkerEnd::closed);
  EXPECT_EQ(report.reason, "given up");
}

// Whatever those have been told who take part in it: to the hasty one all leases have ended when they begin.
void is_the_masters(DistributedCoordinator& master, DistributedCoordinator& worker,
                    DistributedCoordinator& hasty) {
  const WorkerRegistration one{.index = 1, .session = "one", .name = "one", .fingerprint = 7};
  const WorkerRegistration other{.index = 2, .session = "other", .name = "other", .fingerprint = 7};
  const WorkerRegistration again{.index = 1, .session = "again", .name = "again", .fingerprint = 7};
  ASSERT_TRUE(master.open_run({.session = "m", .name = "leases", .fingerprint = 7}, {}));
  ASSERT_TRUE(worker.register_worker(one, {}));
  ASSERT_TRUE(hasty.register_worker(other, {}));
  ASSERT_TRUE(master.enqueue_module({.module = "held"}, {}));
  const auto held = worker.dequeue_module(one, {});
  ASSERT_TRUE(held && std::holds_alternative<Assigned>(*held));
  const std::string lease = std::get<Assigned>(*held).lease;
  ASSERT_TRUE(hasty.send_heartbeat({.index = 2, .session = "other"}, {}));
  const auto kept = worker.send_heartbeat({.index = 1, .session = "one", .leases = {lease}}, {});
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_THAT(kept->lost, ::testing::IsEmpty()) << "it was taken from the one who has it";
  const auto refused = hasty.register_worker(again, {});
  EXPECT_TRUE(!refused && refused.error().code == Errc::locked) << "the one who is there counts as lost";
  const auto told = hasty.run_opening({});
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->lease, kLostAfter);
}
TEST(TheLengthOfLeases, IsTheMastersInAFolder) {  // P4 P6
  TemporaryDirectory folder;
  const auto lasting = [&](Duration lease) {
    return DirectoryCoordinatorOptions{.directory = folder.path(), .lease = lease, .poll = milliseconds(2)};
  };
  DirectoryCoordinator master(lasting(kLostAfter)), worker(lasting(kLostAfter)),
      hasty(lasting(milliseconds(-1)));
  is_the_masters(master, worker, hasty);
}
TEST(TheLengthOfLeases, IsTheMastersAtRedis) {  // P4 P6
  RedisServer server;
  const auto lasting = [&](Duration lease) {
    return RedisCoordinatorOptions{.host = server.path(), .run = "run", .lease = lease};
  };
  RedisCoordinator master(lasting(kLostAfter)), worker(lasting(kLostAfter)), hasty(lasting(milliseconds(-1)));
  is_the_masters(master, worker, hasty);
}

// Connects to a run, with an idea of how long a lease is.
using Connect =
    std::function<std::unique_ptr<DistributedCoordinator>(const std::string& run, Duration lease)>;

// Leases are shorter than the module takes, and than a worker's heartbeats are apart.
void keeps_what_it_has(const Connect& connect, const std::string& run_id, bool is_master_first) {
  constexpr Duration kLonger = kShortLease + seconds(1);
  std::atomic<int> begun = 0;
  Pipeline pipeline("long");
  pipeline.add("long").run([&](Context&) {
    ++begun;
    std::this_thread::sleep_for(std::chrono::milliseconds(kLonger.ms));
  });
  const Graph graph = *Graph::of(pipeline.definition());
  const auto master = connect(run_id, kShortLease), coordinator = connect(run_id, kLostAfter);
  const auto is_there = [&] {
    return is_master_first ? coordinator->run_opening({}).has_value()
                           : !master->get_registered_workers({})->empty();
  };
  RunReport report;
  WorkerReport worked;
  const auto be_master = [&] {
    report = run(graph, {.is_only_master = true, .coordinator = master.get(), .lost_after = kShortLease});
  };
  const auto be_worker = [&] { worked = run_worker(graph, *coordinator, {}); };
  {
    const std::jthread first(is_master_first ? std::function<void()>(be_master) : be_worker);
    ASSERT_TRUE(eventually(is_there));
    const std::jthread second(is_master_first ? std::function<void()>(be_worker) : be_master);
  }
  EXPECT_EQ(report.outcome, RunOutcome::succeeded) << module(report, "long").failure.message;
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(worked.modules, 1U);
  EXPECT_EQ(worked.stale, 0U);
}
// Whoever comes first; both at once, for each takes longer than a lease.
void keeps_what_it_has(const Connect& connect) {
  const std::jthread one([&] { keeps_what_it_has(connect, "one", true); });
  keeps_what_it_has(connect, "other", false);
}
TEST(AWorkerOfAProgram, KeepsWhatItHasUnderShortLeasesAtAServer) {  // P4 P6
  Served server(BATON_PROGRAM);
  keeps_what_it_has([&](const std::string& run, Duration lease) {
    ServerCoordinatorOptions options{.run = run, .lease = lease};
    options.client.addresses = {server.address()};
    return std::make_unique<ServerCoordinator>(options);
  });
}
TEST(AWorkerOfAProgram, KeepsWhatItHasUnderShortLeasesInAFolder) {  // P4 P6
  const TemporaryDirectory temporary;
  keeps_what_it_has([&](const std::string& run, Duration lease) {
    return std::make_unique<DirectoryCoordinator>(
        DirectoryCoordinatorOptions{.directory = temporary.path() + "/" + run, .lease = lease});
  });
}

// More than a server takes in one request.
TEST(AWorkerWithManyPlaces, KeepsAllThatItHasAtAServer) {  // P4 P6
  constexpr std::size_t kMany = 520;
  Served server(BATON_PROGRAM);
  ServerCoordinatorOptions options{.run = "run"};
  options.client.addresses = {server.address()};
  ServerCoordinator master(options), worker(options);
  const WorkerRegistration self{.index = 1, .session = "w", .name = "w", .slots = kMany, .fingerprint = 7};
  ASSERT_TRUE(master.open_run({.session = "m", .fingerprint = 7}, {}));
  ASSERT_TRUE(worker.register_worker(self, {}));
  std::vector<ModuleAssignment> all;
  for (std::size_t i = 0; i < kMany; ++i) all.push_back({.module = "m" + std::to_string(i)});
  ASSERT_TRUE(master.enqueue_modules(all, {}));
  WorkerHeartbeat heartbeat{.index = 1, .session = "w"};
  for (std::size_t i = 0; i < kMany; ++i) {
    const auto got = worker.dequeue_module(self, {});
    ASSERT_TRUE(got && std::holds_alternative<Assigned>(*got));
    heartbeat.leases.push_back(std::get<Assigned>(*got).lease);
  }
  const std::string& last = heartbeat.leases.back();
  ASSERT_TRUE(worker.publish_result({.module = all.back().module, .lease = last}, {}));
  const auto reply = worker.send_heartbeat(heartbeat, {});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_THAT(reply->lost, ::testing::ElementsAre(last));
}

// The master asks twice a second.
TEST(AMasterAtAServer, HearsAllThatIsSaidHoweverManySayIt) {  // P16
  constexpr std::uint64_t kMany = 250;
  Served server(BATON_PROGRAM);
  ServerCoordinatorOptions options{.run = "run"};
  options.client.addresses = {server.address()};
  ServerCoordinator master(options), worker(options);
  ASSERT_TRUE(master.open_run({.session = "m", .fingerprint = 7}, {}));
  for (std::uint64_t i = 0; i < kMany; ++i)
    ASSERT_TRUE(worker.say({{.module = "m", .first = i, .lines = {"line"}}}, {}));
  EXPECT_EQ(master.take_said({}).value().size(), kMany);
  EXPECT_TRUE(master.take_said({}).value().empty());
}

TEST(AMasterInAFolder, NeitherCancelsNorClosesWhatAnotherHasTakenOver) {  // P17
  const TemporaryDirectory temporary;
  // Whoever is the master is taken to be gone as soon as another comes.
  const DirectoryCoordinatorOptions options{.directory = temporary.path() + "/run",
                                            .lease = milliseconds(-1)};
  DirectoryCoordinator first(options), second(options);
  ASSERT_TRUE(first.open_run({.session = "first", .fingerprint = 7}, {}));
  ASSERT_TRUE(second.open_run({.session = "second", .fingerprint = 7}, {}));
  EXPECT_EQ(first.broadcast_cancellation("no", {}).error().code, Errc::conflict);
  EXPECT_EQ(first.close_run("over", {}).error().code, Errc::conflict);
  EXPECT_FALSE(*second.is_cancellation_requested({}));
  EXPECT_TRUE(second.close_run("over", {}));
}

// It has found that the run is its own, stands still for longer than its lease, and goes on.
TEST(AMasterInAFolder, DoesNotCloseWhatAnotherHasTakenOverMeanwhile) {  // P17
  const TemporaryDirectory temporary;
  const DirectoryCoordinatorOptions options{.directory = temporary.path() + "/run"};
  DirectoryCoordinator first(options), second(options), worker(options);
  ASSERT_TRUE(first.open_run({.session = "first", .fingerprint = 7}, {}));
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const char* sign : {"/master", "/masters/000000000001"})
    std::filesystem::last_write_time(options.directory + sign, long_ago);
  ASSERT_TRUE(second.open_run({.session = "second", .fingerprint = 7}, {}));
  EXPECT_EQ(first.close_run("over", {}).error().code, Errc::conflict);
  EXPECT_TRUE(second.enqueue_module({.module = "m"}, {}));
  const auto got = worker.dequeue_module({.index = 1, .session = "w", .fingerprint = 7}, {});
  EXPECT_TRUE(got && std::holds_alternative<Assigned>(*got)) << "the run was closed under its master";
}

TEST(ARunInAFolder, IsOverOnceItsMasterWasKilledWhileItClosedIt) {  // P17
  const TemporaryDirectory temporary;
  const DirectoryCoordinatorOptions options{.directory = temporary.path() + "/run"};
  DirectoryCoordinator first(options), next(options), worker(options);
  ASSERT_TRUE(first.open_run({.session = "first", .fingerprint = 7}, {}));
  ASSERT_TRUE(first.close_run("succeeded", {}));
  std::filesystem::remove(options.directory + "/closed");  // as if it had not come so far
  const auto refused = next.open_run({.session = "next", .fingerprint = 7}, {});
  ASSERT_TRUE(!refused && refused.error().code == Errc::conflict);
  const auto told = worker.dequeue_module({.index = 1, .session = "w", .fingerprint = 7}, {});
  ASSERT_TRUE(told && std::holds_alternative<Closed>(*told));
  EXPECT_EQ(std::get<Closed>(*told).reason, "succeeded");
}

}  // namespace
}  // namespace baton::pipeline
