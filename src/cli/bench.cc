#include "cli/bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/json_object.h"
#include "cli/last_words.h"
#include "cli/output.h"
#include "cli/quantities.h"
#include "cli/table.h"

namespace baton::cli {
namespace {

constexpr const char* kAbout =
    R"(The tasks go through a queue of their own, which is purged at the end, and emptied if something goes
wrong. A time is that from asking to answer, so with many requests under way it is mostly spent in line.

)";

using Clients = std::vector<std::unique_ptr<client::Client>>;
using Done = std::function<void(const Status&)>;
// Begins request `number` of so many.
using Begin = std::function<void(client::Client& client, std::size_t number, Done done)>;

std::int64_t now_us() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000 + time.tv_nsec / 1000;
}

struct Measured {
  double per_second = 0;
  std::uint64_t p50_us = 0;
  std::uint64_t p99_us = 0;
};

// Keeps `depth` requests under way on each connection until all are answered.
class Load {
 public:
  Load(Clients& clients, std::size_t total, Begin begin)
      : clients_(clients), total_(total), begin_(std::move(begin)), took_us_(clients.size()) {}

  Result<Measured> run(std::size_t depth) {
    const std::int64_t began_at = now_us();
    for (std::size_t lane = 0; lane < depth; ++lane) {
      for (std::size_t connection = 0; connection < clients_.size(); ++connection) go_on(connection);
    }
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return under_way_ == 0; });
    }
    if (trouble_) return std::unexpected(*trouble_);
    return measured(now_us() - began_at);
  }

 private:
  void go_on(std::size_t connection) {
    {
      const std::lock_guard lock(mutex_);
      if (next_ == total_ || trouble_) return;
      ++next_;
      ++under_way_;
    }
    const std::int64_t began_at = now_us();
    begin_(*clients_[connection], begun_++, [this, connection, began_at](const Status& done) {
      took_us_[connection].push_back(
          static_cast<std::uint32_t>(now_us() - began_at));  // on this client's thread alone
      if (!done) fail(done.error());
      go_on(connection);
      const std::lock_guard lock(mutex_);
      if (--under_way_ == 0) changed_.notify_all();
    });
  }
  void fail(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!trouble_) trouble_ = error;
  }
  Measured measured(std::int64_t all_us) const {
    std::vector<std::uint32_t> sorted;
    for (const auto& some : took_us_) sorted.insert(sorted.end(), some.begin(), some.end());
    std::ranges::sort(sorted);
    const auto at = [&](std::size_t percent) {
      return sorted.empty() ? 0 : sorted[(sorted.size() - 1) * percent / 100];
    };
    return {.per_second = static_cast<double>(sorted.size()) * 1e6 /
                          static_cast<double>(std::max<std::int64_t>(all_us, 1)),
            .p50_us = at(50),
            .p99_us = at(99)};
  }

  Clients& clients_;
  const std::size_t total_;
  const Begin begin_;
  std::vector<std::vector<std::uint32_t>> took_us_;  // by connection
  std::atomic<std::size_t> begun_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0;
  std::size_t under_way_ = 0;
  std::optional<Error> trouble_;
};

// A queue of its own, through which every task goes: handed in, taken, completed.
class Bench {
 public:
  Bench(Clients& clients, const BenchOptions& options)
      : clients_(clients), options_(options), payload_(options.payload_bytes, 'x'), held_(options.tasks) {}

  Result<Measured> submit() {
    return run([this](client::Client& client, std::size_t, const Done& done) {
      client.submit({.queue = queue_, .payload = payload_},
                    [done](const Result<client::Submitted>& task) { done(status_of(task)); });
    });
  }
  Result<Measured> lease() {
    return run([this](client::Client& client, std::size_t number, const Done& done) {
      client.lease({.worker = "bench", .queues = {queue_}, .ttl = minutes(10)},
                   [this, number, done](const Result<std::vector<client::Leased>>& leased) {
                     if (leased && leased->empty())
                       return done(failure(Errc::not_found,
                                           "somebody else takes tasks from the queue of the benchmark"));
                     if (leased) held_[number] = leased->front().held();
                     done(status_of(leased));
                   });
    });
  }
  Result<Measured> complete() {
    return run([this](client::Client& client, std::size_t number, const Done& done) {
      client.complete(held_[number], {},
                      [done](const Result<client::Verdict>& verdict) { done(status_of(verdict)); });
    });
  }
  // A phase that failed leaves tasks that nobody will take, or that are leased to us.
  void clean_up() {
    Status done = cancel_all("waiting");
    if (done) done = cancel_all("leased");
    if (done) done = purge();
    if (done) return;
    complain(done.error());
    to_errors("{}", what_is_left());
  }
  std::string what_is_left() const {
    return fmt::format(
        "baton: the queue {0} is left behind; `baton task cancel --queue {0} --state waiting --limit {1}`, "
        "the "
        "same with leased, and `baton queue purge {0}` clear it\n",
        queue_, options_.tasks);
  }

 private:
  static constexpr std::uint32_t kPurgedAtOnce = 1024;
  static constexpr std::uint32_t kCancelledAtOnce = 1000;
  static constexpr Duration kCleanUpMax = seconds(5);  // for each request: perhaps nobody is there any more

  Status cancel_all(const char* state) {
    client::TaskQuery query{.queue = queue_, .state = state, .count = kCancelledAtOnce};
    do {
      const auto page = clients_.front()->tasks(query, kCleanUpMax);
      if (!page) return std::unexpected(page.error());
      const auto cancel = [&](client::Client& client, std::size_t number, const Done& done) {
        client.cancel(
            page->tasks[number].task, "bench", "the benchmark has failed", [done](const Status& said) {
              const bool has_ended =
                  !said && (said.error().code == Errc::wrong_state || said.error().code == Errc::not_found);
              done(has_ended ? Status() : said);
            });
      };
      const auto cancelled = Load(clients_, page->tasks.size(), cancel).run(options_.depth);
      if (!cancelled) return std::unexpected(cancelled.error());
      query.cursor = page->cursor;
    } while (query.cursor != 0);
    return {};
  }
  Status purge() {
    for (std::uint64_t purged = kPurgedAtOnce; purged == kPurgedAtOnce;) {
      const auto done = clients_.front()->purge(queue_, kPurgedAtOnce, kCleanUpMax);
      if (!done) return std::unexpected(done.error());
      purged = *done;
    }
    return {};
  }

  template <class T>
  static Status status_of(const Result<T>& result) {
    if (!result) return std::unexpected(result.error());
    return {};
  }
  Result<Measured> run(const Begin& begin) {
    return Load(clients_, options_.tasks, begin).run(options_.depth);
  }

  Clients& clients_;
  const BenchOptions& options_;
  const std::string queue_ = fmt::format("bench-{}", ::getpid());
  const std::string payload_;
  std::vector<client::Held> held_;
};

void print_json(const std::string& phase, const Measured& measured, const BenchOptions& options) {
  fmt::print("{}\n", JsonObject()
                         .text("phase", phase)
                         .number("connections", options.connections)
                         .number("depth", options.depth)
                         .number("tasks", options.tasks)
                         .number("payload_bytes", options.payload_bytes)
                         .decimal("per_second", measured.per_second)
                         .number("p50_us", measured.p50_us)
                         .number("p99_us", measured.p99_us)
                         .whole());
}

}  // namespace

int run_bench(const BenchOptions& options) {
  Clients clients;
  for (std::uint64_t made = 0; made < options.connections; ++made) {
    auto client = connect(options.connection);
    if (!client) return complain_of_connection(client.error(), format_of(options.json));
    clients.push_back(std::move(*client));
  }
  if (!options.json)
    fmt::print("{} tasks of {} bytes, {} connections x {} requests under way\n", options.tasks,
               options.payload_bytes, options.connections, options.depth);
  Table table({{""}, {"PER SECOND", Align::right}, {"P50", Align::right}, {"P99", Align::right}});
  Bench bench(clients, options);
  const LastWords if_ended(bench.what_is_left());
  const std::pair<const char*, Result<Measured> (Bench::*)()> phases[] = {
      {"submit", &Bench::submit}, {"lease", &Bench::lease}, {"complete", &Bench::complete}};
  for (const auto& [name, phase] : phases) {
    const auto measured = (bench.*phase)();
    if (!measured) {
      const int exit_code = complain(measured.error(), format_of(options.json));
      bench.clean_up();
      return exit_code;
    }
    table.row({name, fmt::format("{:.0f}", measured->per_second), milliseconds_text(measured->p50_us),
               milliseconds_text(measured->p99_us)});
    if (options.json) print_json(name, *measured, options);
  }
  if (!options.json) table.print();
  bench.clean_up();
  return 0;
}

void add_bench_command(CommandLine& line) {
  // The closure that runs the command shares the options with the parser that fills them.
  auto options = std::make_shared<BenchOptions>();
  Command bench = line.command("bench", "Measures a running coordinator: submit, lease and complete");
  bench.number("--connections N", options->connections, "Connections", 1, 1000)
      .number("--depth N", options->depth, "Requests under way on each", 1, 4096)
      .number("--tasks N", options->tasks, "Tasks in all", 1, 100'000'000)
      .number("--payload N", options->payload_bytes, "Bytes of a payload", 0, 1'000'000)
      .flag("--json", options->json, "Output for programs: a line for each phase");
  add_connection_options(bench, options->connection);
  bench.footer(kAbout + ("Example: " + line.program()) + " bench --connections 64 --depth 1 --tasks 20000")
      .run([options] { return run_bench(*options); });
}

}  // namespace baton::cli
