#include "cli/demo.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "engine/coordinator.h"
#include "engine/describe.h"

namespace baton::cli {
namespace {

constexpr const char* kNamespace = "demo";
constexpr const char* kQueue = "letters";
constexpr Duration kTtl = milliseconds(400);

// What happens to a worker on its first attempt at a task; every later attempt goes well.
enum class Fate { works, crashes, fails, oversleeps };
Fate fate_of(std::string_view payload, std::uint32_t attempt) {
  if (attempt > 1) return Fate::works;
  return static_cast<Fate>(static_cast<unsigned char>(payload.back()) % 4);
}

void pretend_to_work(Duration time) { std::this_thread::sleep_for(std::chrono::milliseconds(time.ms)); }

// Entries are seen when they are recorded but shown only when they are durable, as everything is.
class Printer {
 public:
  void recorded(const core::Event& event, const core::Stamp& stamp) {
    const std::lock_guard lock(mutex_);
    epochs_.saw(stamp);
    lines_.emplace_back(stamp.lsn, engine::describe(event, stamp, epochs_));
  }
  void durable(core::Lsn lsn) {
    const std::lock_guard lock(mutex_);
    for (; !lines_.empty() && lines_.front().first <= lsn; lines_.pop_front()) print(lines_.front().second);
  }

 private:
  void print(const std::string& line) {
    static constexpr std::pair<std::string_view, const char*> kColours[] = {
        {"LeaseExpired", "33"}, {"TaskFailed", "33"},    {"TaskCancelled", "35"},
        {"TaskDead", "31"},     {"TaskCompleted", "32"}, {"LeaseGranted", "36"}};
    const char* colour = nullptr;
    for (const auto& [type, code] : kColours) {
      if (line.find(type) != std::string::npos) colour = code;
    }
    const bool coloured = colour != nullptr && to_terminal_;
    // Not fmt::print: an error on this thread would end the process. main() looks whether there was one.
    std::fputs((coloured ? fmt::format("\x1b[{}m{}\x1b[0m\n", colour, line) : line + "\n").c_str(), stdout);
    std::fflush(stdout);
  }

  const bool to_terminal_ = isatty(STDOUT_FILENO) != 0;
  std::mutex mutex_;
  engine::Epochs epochs_;
  std::deque<std::pair<core::Lsn, std::string>> lines_;
};

struct Tally {
  std::atomic<unsigned> crashes = 0, failures = 0, refused = 0, completed = 0;
};

// Works until there is nothing unfinished. A crash is played by walking away from the lease: to the
// coordinator that looks the same.
void work(Coordinator& coordinator, std::uint64_t number, Tally& tally) {
  unsigned life = 1;
  std::string name = fmt::format("worker-{}.{}", number, life);
  for (;;) {
    const auto leased =
        coordinator.lease({.ns = kNamespace, .queues = {kQueue}, .worker = name, .ttl = kTtl});
    if (!leased) return;
    if (!*leased) {
      const auto queues = coordinator.queues({.ns = kNamespace});
      if (!queues || queues->queues.empty()) return;
      const auto& counts = queues->queues.front().counts;
      if (counts[static_cast<std::size_t>(core::TaskState::waiting)] +
              counts[static_cast<std::size_t>(core::TaskState::leased)] ==
          0)
        return;
      pretend_to_work(milliseconds(20));
      continue;
    }
    const LeasedTask& task = **leased;
    const std::string_view payload = text_of(task.payload);
    pretend_to_work(milliseconds(30));
    switch (fate_of(payload, task.attempt)) {
      case Fate::crashes:
        ++tally.crashes;
        name = fmt::format("worker-{}.{}", number, ++life);
        continue;
      case Fate::fails:
        ++tally.failures;
        (void)coordinator.fail(
            {.ns = kNamespace, .task = task.task, .lease = task.lease, .reason = Blob("no stamp left")});
        continue;
      case Fate::oversleeps: pretend_to_work(kTtl + milliseconds(50)); break;
      case Fate::works: break;
    }
    const auto verdict = coordinator.complete({.ns = kNamespace,
                                               .task = task.task,
                                               .lease = task.lease,
                                               .result = Blob(fmt::format("sent by {}", name))});
    if (verdict) ++(verdict->cancelled ? tally.refused : tally.completed);
  }
}

int complain(const Error& error) {
  to_errors("baton: {}: {}\n", word(error.code), error.message);
  return 1;
}

}  // namespace

int run_demo(const DemoOptions& demo) {
  Printer printer;
  CoordinatorOptions options;
  options.log.segment_bytes = std::uint64_t{8} << 20;
  options.engine.observer = [&](const core::Event& event, const core::Stamp& stamp) {
    printer.recorded(event, stamp);
  };
  auto opened = Coordinator::open(demo.directory, std::move(options));
  if (!opened) return complain(opened.error());
  Coordinator& coordinator = **opened;
  fmt::print(
      "Opened {}: {} entries replayed in {} ms. Each line below is a log entry, shown once it is "
      "durable.\n\n",
      demo.directory, coordinator.recovery().replayed, coordinator.recovery().took.ms);

  std::atomic<bool> stop = false;
  std::thread shower([&] {
    while (!stop) {
      core::Lsn lsn = 0;
      if (!coordinator.inspect([&](const core::State& state) { lsn = state.last; })) return;
      printer.durable(lsn);
      pretend_to_work(milliseconds(10));
    }
  });
  Tally tally;
  for (std::uint64_t i = 0; i < demo.tasks; ++i) {
    const auto submitted = coordinator.submit({.ns = kNamespace,
                                               .queue = kQueue,
                                               .payload = Blob(fmt::format("letter {}", i)),
                                               .retry = {.base = milliseconds(200)}});
    if (!submitted) {
      stop = true;
      shower.join();
      return complain(submitted.error());
    }
  }
  std::vector<std::thread> workers;
  for (std::uint64_t i = 1; i <= demo.workers; ++i)
    workers.emplace_back([&, i] { work(coordinator, i, tally); });
  for (std::thread& worker : workers) worker.join();
  stop = true;
  shower.join();

  if (auto closed = coordinator.close(); !closed) return complain(closed.error());
  printer.durable(UINT64_MAX);
  fmt::print(
      "\nIn this run: worker crashes {}, failed attempts {}, completions refused because they came too late "
      "{}.\n"
      "All the same, tasks completed, each once: {}.\n\n"
      "The log is in {}.\n"
      "Look at it with:  {} log dump {}\n"
      "Check it with:    {} log verify {}\n",
      tally.crashes.load(), tally.failures.load(), tally.refused.load(), tally.completed.load(),
      demo.directory, demo.program, demo.directory, demo.program, demo.directory);
  return 0;
}

void add_demo_command(CommandLine& line) {
  // The closure that runs the command shares the options with the parser that fills them.
  auto options = std::make_shared<DemoOptions>();
  options->program = line.program();
  line.command("demo", "Runs tasks through workers that crash, and shows every log entry")
      .option("--data DIR", options->directory, "Data directory, made if need be")
      .number("--tasks N", options->tasks, "Tasks to submit", 1, 100'000)
      .number("--workers N", options->workers, "Workers at a time", 1, 64)
      .footer("Example: " + options->program + " demo --data demo-data --tasks 12")
      .run([options] { return run_demo(*options); });
}

}  // namespace baton::cli
