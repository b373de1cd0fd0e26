// What it costs to coordinate modules: bench_pipeline [ROUNDS]
//
//   10 000 modules that do nothing, on 8 workers in this process
//   the same through a baton server, with 4 worker processes
//   modules of 100 ms through the server: what of the time is coordination
//   2 000 commands of 10 ms as a pipeline file, beside make -j and GNU parallel (where it is installed)
//   what a master and workers use that wait
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "peers.h"
#include "pipeline/context.h"
#include "pipeline/memory_coordinator.h"
#include "pipeline/pipeline.h"
#include "pipeline/run.h"
#include "pipeline/server_coordinator.h"
#include "pipeline/worker.h"
#include "tests/temporary_directory.h"

namespace {

using namespace baton;
using namespace baton::pipeline;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

double median(std::vector<double> all) {
  std::ranges::sort(all);
  return all[all.size() / 2];
}

// Chains of ten, so that most modules need another one.
Pipeline nothing(int modules, int rest_ms) {
  Pipeline pipeline("nothing");
  std::optional<Handle<int>> before;
  for (int i = 0; i < modules; ++i) {
    const std::string id = "m" + std::to_string(i);
    const auto rest = [rest_ms] {
      if (rest_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(rest_ms));
    };
    if (i % 10 == 0)
      before = pipeline.add(id).run([rest](Context&) { return rest(), 1; });
    else
      before = pipeline.add(id, *before).run([rest](Context&, int value) { return rest(), value + 1; });
  }
  return pipeline;
}

double in_memory() {
  constexpr int kModules = 10'000;
  const Pipeline pipeline = nothing(kModules, 0);
  const auto graph = Graph::of(pipeline.definition());
  MemoryExchange exchange;
  std::vector<std::jthread> workers;
  MemoryCoordinator coordinator(exchange);
  for (int i = 1; i <= 8; ++i) {
    workers.emplace_back([&, i] {
      MemoryCoordinator mine(exchange);
      WorkerOptions options{.index = i, .slots = 1};
      options.site.name = "worker-" + std::to_string(i);
      (void)run_worker(*graph, mine, options);
    });
  }
  const auto began = Clock::now();
  const RunReport report = run(*graph, {.is_only_master = true,
                                        .coordinator = &coordinator,
                                        .workers_expected = 8,
                                        .worker_poll = milliseconds(5)});
  const double took = seconds_since(began);
  if (report.outcome != RunOutcome::succeeded)
    fmt::print("the run {}: {}\n", word(report.outcome), report.reason);
  return kModules / took;
}

ServerCoordinatorOptions at(const std::string& address, const std::string& run) {
  ServerCoordinatorOptions options{.run = run};
  options.client.addresses = {address};
  return options;
}

pid_t start_worker(const std::string& program, const std::string& address, const std::string& run, int index,
                   int modules, int rest_ms, int slots) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::execl(program.c_str(), program.c_str(), "--worker", address.c_str(), run.c_str(),
          std::to_string(index).c_str(), std::to_string(modules).c_str(), std::to_string(rest_ms).c_str(),
          std::to_string(slots).c_str(), nullptr);
  ::_exit(127);
}

int be_worker(char** arguments) {
  const Pipeline pipeline = nothing(std::atoi(arguments[5]), std::atoi(arguments[6]));
  const auto graph = Graph::of(pipeline.definition());
  ServerCoordinator coordinator(at(arguments[2], arguments[3]));
  WorkerOptions options{.index = std::atoi(arguments[4]),
                        .slots = static_cast<std::uint32_t>(std::atoi(arguments[7]))};
  options.site.name = "worker-" + std::string(arguments[3]) + "-" + arguments[4];
  return exit_code(run_worker(*graph, coordinator, options).end);
}

struct ServerRun {
  double wall = 0;
  double processor = 0;  // of the workers and us, in seconds
};
ServerRun through_server(const std::string& program, const std::string& address, int modules, int rest_ms,
                         int slots) {
  static int number = 0;
  const std::string run_id = "bench-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
  const Pipeline pipeline = nothing(modules, rest_ms);
  const auto graph = Graph::of(pipeline.definition());
  std::vector<pid_t> workers;
  for (int i = 1; i <= 4; ++i)
    workers.push_back(start_worker(program, address, run_id, i, modules, rest_ms, slots));
  ServerCoordinator coordinator(at(address, run_id));
  // Until all are there, so that only the run itself is measured.
  (void)coordinator.open_run(
      {.session = "waits", .name = "nothing", .fingerprint = graph->fingerprint(), .parts = graph->parts()},
      {});
  for (;;) {
    const auto there = coordinator.get_registered_workers({});
    if (there && there->size() == workers.size()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const auto began = Clock::now();
  const RunReport report = run(
      *graph,
      {.run = run_id, .is_only_master = true, .coordinator = &coordinator, .worker_poll = milliseconds(200)});
  ServerRun result{.wall = seconds_since(began)};
  if (report.outcome != RunOutcome::succeeded)
    fmt::print("the run {}: {}\n", word(report.outcome), report.reason);
  for (const pid_t worker : workers) {
    if (report.outcome != RunOutcome::succeeded) ::kill(worker, SIGTERM);  // nobody tells it that it is over
    rusage used{};
    ::wait4(worker, nullptr, 0, &used);
    result.processor += static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                        static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  }
  return result;
}

double timed(const std::string& command) {
  const auto began = Clock::now();
  if (std::system((command + " > /dev/null 2>&1").c_str()) != 0) fmt::print("failed: {}\n", command);
  return seconds_since(began);
}

void beside_others(int rounds) {
  constexpr int kCommands = 2000;
  TemporaryDirectory folder;
  std::ofstream file(folder.path() + "/pipeline.yaml"), makefile(folder.path() + "/Makefile"),
      list(folder.path() + "/list");
  file << "version: 1\nmodules:\n";
  makefile << "all:";
  for (int i = 0; i < kCommands; ++i) makefile << " m" << i;
  makefile << "\n";
  for (int i = 0; i < kCommands; ++i) {
    file << "  m" << i << ": { cmd: [sleep, '0.01'] }\n";
    makefile << "m" << i << ":\n\t@sleep 0.01\n";
    list << "sleep 0.01\n";
  }
  file.close(), makefile.close(), list.close();
  const bool has_parallel = std::system("command -v parallel > /dev/null 2>&1") == 0;
  for (const int jobs : {2, 8}) {
    std::vector<double> ours, make, parallel;
    for (int round = 0; round < rounds; ++round) {
      ours.push_back(
          timed(fmt::format("build/release/baton run {}/pipeline.yaml -j {} --json", folder.path(), jobs)));
      make.push_back(timed(fmt::format("make -s -C {} -j {}", folder.path(), jobs)));
      if (has_parallel)
        parallel.push_back(timed(fmt::format("parallel -j {} < {}/list", jobs, folder.path())));
    }
    fmt::print("{} commands of 10 ms, {} at a time: baton {:.2f} s, make {:.2f} s ({:.2f} x)", kCommands,
               jobs, median(ours), median(make), median(ours) / median(make));
    fmt::print("{}\n", has_parallel ? fmt::format(", parallel {:.2f} s", median(parallel))
                                    : "; GNU parallel is not installed");
  }
}

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

// One module that only waits, on one of four workers; the others and the master have nothing to do.
void idle(const std::string& program, const std::string& address) {
  const double before = processor_seconds();
  const ServerRun run = through_server(program, address, 1, 5000, 2);
  fmt::print("waiting: master {:.2f} % of a processor, 4 workers {:.2f} %\n",
             100 * (processor_seconds() - before) / run.wall, 100 * run.processor / run.wall);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 8 && std::string_view(argv[1]) == "--worker") return be_worker(argv);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  std::vector<double> memory, server, slow;
  TemporaryDirectory directory;
  const auto peer = bench::start_baton("build/release/baton", directory.path());
  const std::string address = "127.0.0.1:" + std::to_string(peer->port());
  for (int round = 0; round < rounds; ++round) {
    memory.push_back(in_memory());
    server.push_back(10'000 / through_server(argv[0], address, 10'000, 0, 4).wall);
    // 400 modules in chains of ten on 16 places: 25 after each other, if nothing were lost.
    slow.push_back(through_server(argv[0], address, 400, 100, 4).wall);
  }
  const auto spread = [](const std::vector<double>& all) {
    return fmt::format("[{:.0f} to {:.0f}]", std::ranges::min(all), std::ranges::max(all));
  };
  fmt::print("10 000 modules on 8 workers in this process: {:.0f} modules/s {}\n", median(memory),
             spread(memory));
  fmt::print("10 000 modules through a server, 4 worker processes: {:.0f} modules/s {}\n", median(server),
             spread(server));
  fmt::print("400 modules of 100 ms on 16 places: {:.2f} s, of which {:.1f} % is coordination\n",
             median(slow), 100 * (median(slow) - 2.5) / median(slow));
  idle(argv[0], address);
  beside_others(rounds);
  return 0;
}
