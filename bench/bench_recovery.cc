// How long a restart takes: replay of a log of whole task lives, and a million waiting tasks from a snapshot.
// With a payload size also what a waiting task costs in memory whatever its payload. Usage: bench_recovery
// [directory] [thousand tasks, default 1000] [payload bytes, default 200]
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <semaphore>
#include <string>

#include "engine/coordinator.h"
#include "engine/recovery.h"
#include "log/posix_disk.h"

namespace {

using namespace baton;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::size_t resident_bytes() {
  std::size_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * 4096;
}

[[noreturn]] void give_up(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  std::exit(1);
}

// Keeps a bounded number of requests in flight and waits for all of them at the end.
class Pump {
 public:
  explicit Pump(Coordinator& coordinator) : coordinator_(coordinator) {}
  ~Pump() {
    for (int i = 0; i < kInFlight; ++i) room_.acquire();
  }
  void ask(core::Request request, std::function<void(const core::Reply&)> then = {}) {
    room_.acquire();
    coordinator_.ask(std::move(request), [this, then = std::move(then)](engine::Answer answer) {
      if (!answer.reply) give_up(answer.reply.error());
      if (then) then(*answer.reply);
      room_.release();
    });
  }

 private:
  static constexpr int kInFlight = 2048;
  Coordinator& coordinator_;
  std::counting_semaphore<kInFlight> room_{kInFlight};
};

std::unique_ptr<Coordinator> open(const std::string& directory) {
  CoordinatorOptions options;
  options.housekeeping.snapshot_every_bytes = std::uint64_t{1} << 40;  // only when asked for
  options.engine.rules.retention_count = 1;
  options.engine.cache_bytes = std::size_t{16} << 20;
  auto coordinator = Coordinator::open(directory, options);
  if (!coordinator) give_up(coordinator.error());
  return std::move(*coordinator);
}

void recover_and_tell(const std::string& directory, const char* what) {
  auto disk = log::PosixDisk::open_directory(directory);
  if (!disk) give_up(disk.error());
  const std::size_t before = resident_bytes();
  const auto start = Clock::now();
  auto recovered = engine::recover(**disk, {});
  if (!recovered) give_up(recovered.error());
  const double took = seconds_since(start);
  const double tasks = recovered->state.tasks.used();
  std::printf(
      "%s: %.0f tasks, %.2f s; %lu entries replayed behind the snapshot, %.2f M entries/s; %.0f bytes a "
      "task\n",
      what, tasks, took, recovered->replayed, static_cast<double>(recovered->replayed) / took / 1e6,
      tasks > 0 ? static_cast<double>(resident_bytes() - before) / tasks : 0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : "bench-data";
  if (std::filesystem::exists(directory)) {
    std::fprintf(stderr, "%s exists; name a directory that does not, it is removed at the end\n",
                 directory.c_str());
    return 1;
  }
  const int tasks = (argc > 2 ? std::atoi(argv[2]) : 1000) * 1000;
  std::filesystem::create_directories(directory);
  const auto payload_bytes = static_cast<std::size_t>(argc > 3 ? std::atoi(argv[3]) : 200);
  const SubmitTask submit{.ns = "bench", .queue = "q", .payload = Blob(Bytes(payload_bytes, std::byte{7}))};
  {
    auto coordinator = open(directory + "/lives");
    Pump pump(*coordinator);
    for (int i = 0; i < tasks; ++i) {
      pump.ask(submit);
      pump.ask(LeaseTask{.ns = "bench", .queues = {"q"}, .worker = "w"}, [&](const core::Reply& reply) {
        // The answer comes on the coordinator's thread, which must not wait for room.
        const auto& granted = std::get<core::Granted>(reply);
        coordinator->ask(CompleteTask{.ns = "bench", .task = granted.task, .lease = granted.lease},
                         [](engine::Answer) {});
      });
    }
  }
  recover_and_tell(directory + "/lives", "replay of whole lives");
  malloc_trim(0);
  {
    auto coordinator = open(directory + "/waiting");
    {
      Pump pump(*coordinator);
      for (int i = 0; i < tasks; ++i) pump.ask(submit);
    }
    const auto start = Clock::now();
    // Snapshots are made from sealed segments: another start seals this one.
    if (auto closed = coordinator->close(); !closed) give_up(closed.error());
    coordinator = open(directory + "/waiting");
    if (auto made = coordinator->make_snapshot(); !made) give_up(made.error());
    std::printf("snapshot made in %.2f s\n", seconds_since(start));
    if (auto closed = coordinator->close(); !closed) give_up(closed.error());
  }
  malloc_trim(0);
  recover_and_tell(directory + "/waiting", "from a snapshot");
  std::filesystem::remove_all(directory);
}
