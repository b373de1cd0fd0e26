#include "tests/chaos/ordeal.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include "client/client.h"
#include "tests/chaos/people.h"
#include "tests/proxy.h"

namespace baton::chaos {
namespace {

constexpr int kFaultsInARound = 5;
constexpr std::int64_t kDrainMs = 60'000;

Surroundings surroundings_of(const OrdealOptions& options, const Stage& stage) {
  Surroundings surroundings = stage.surroundings();
  if (options.mutant != 0)
    surroundings.environment.emplace_back("BATON_MUTANT", std::to_string(options.mutant));
  return surroundings;
}

void pause_ms(std::int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

class Ordeal {
 public:
  Ordeal(const OrdealOptions& options, Stage& stage)
      : options_(options),
        stage_(stage),
        dice_(static_cast<unsigned>(options.seed)),
        server_(options.mutant == 0 ? BATON_PROGRAM : BATON_MUTANT_SERVER, {"--segment-bytes", "4MiB"},
                surroundings_of(options, stage)),
        proxy_(server_.port()) {}

  Tally run() {
    begin_life();
    for (unsigned round = 0; round < options_.rounds; ++round) {
      for (int faults = 0; faults < kFaultsInARound; ++faults) one_fault();
      fault_of_the_setting();
      kill_and_start();
    }
    end_life();
    drain();
    return judge();
  }

 private:
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(dice_);
  }
  void happened(const char* fault, std::uint64_t times = 1) { tally_.faults[fault] += times; }

  Person person(const std::string& name, bool is_bare) {
    return {.name = name,
            .caller = is_bare ? bare_caller(proxy_.port()) : library_caller(proxy_.port()),
            .seed = static_cast<std::uint64_t>(between(1, 1 << 30))};
  }

  void begin_life() {
    for (int number = 0; number < 3; ++number) {
      const std::string name = "client-" + std::to_string(number);
      people_.emplace_back([this, p = person(name, number != 0)]() mutable {
        submit_tasks(std::move(p), history_, stops_, 0);
      });
    }
    people_.emplace_back([this, p = person("reader", true)]() mutable {
      ask_about_tasks(std::move(p), "client-1", history_, stops_);
    });
    for (int number = 0; number < 8; ++number) {
      const std::string name = "worker-" + std::to_string(number);
      people_.emplace_back([this, p = person(name, number % 2 == 0)]() mutable {
        work(std::move(p), Manner::lively, history_, stops_);
      });
    }
    process_ = std::make_unique<crash::Child>(
        crash::ChildOptions{.command = {BATON_CHAOS_WORKER, std::to_string(proxy_.port()), "process",
                                        std::to_string(between(1, 1 << 30)), process_history()}});
  }
  std::string process_history() const { return files_.path() + "/process"; }

  void one_fault() {
    pause_ms(between(5, 40));
    switch (between(0, 8)) {
      case 0: return hold("delayed", {.delay_ms = between(2, 30)}, 80);
      case 1: return hold("byte at a time", {.piece_bytes = 1}, 60);
      case 2: return half_open();
      case 3: return reset();
      case 4: return cut({.cut_requests_after = between(0, 400)});
      case 5: return cut({.cut_replies_after = between(0, 400)});
      case 6: return hold("refused connections", {.refuses = true}, 30);
      case 7: return pause_server();
      default: return pause_worker();
    }
  }

  void hold(const char* fault, const ProxyFaults& faults, std::int64_t most_ms) {
    proxy_.set(faults);
    pause_ms(between(10, most_ms));
    proxy_.set({});
    happened(fault);
  }
  // Both sides believe that there is a connection, until it is reset.
  void half_open() {
    hold("half open", {.holds_requests = true, .holds_replies = true}, 400);
    proxy_.reset();
  }
  void reset() {
    proxy_.reset();
    happened("reset");
  }
  void cut(const ProxyFaults& faults) {
    const std::uint64_t before = proxy_.cuts();
    proxy_.set(faults);
    pause_ms(30);
    proxy_.set({});
    happened("cut in the middle", proxy_.cuts() - before);
  }
  void pause_server() {
    server_.pause();
    pause_ms(between(20, 250));
    server_.go_on();
    happened("server paused");
  }
  void pause_worker() {
    process_->stop();
    pause_ms(between(100, 300));
    process_->signal(SIGCONT);
    happened("worker paused");
  }

  void fault_of_the_setting() {
    if (options_.setting == Setting::clock) {
      stage_.move_clock(between(-300, 600) * 1000);
      happened("clock moved");
    } else if (options_.setting == Setting::small_disk) {
      stage_.fill_disk();
      pause_ms(1200);  // the server looks once a second
      stage_.make_room();
      happened("disk full");
    }
  }

  void kill_and_start() {
    server_.kill();
    stage_.power_was_cut();
    happened(options_.setting == Setting::power ? "power cut" : "killed");
    server_.start();
    proxy_.set_target(server_.port());
    ++tally_.rounds;
  }

  void end_life() {
    proxy_.set({});
    stops_ = true;
    for (std::thread& one : people_) one.join();
    process_->signal(SIGTERM);
    if (process_->wait(crash::after_ms(10'000)).code != 0)
      tally_.complaints.push_back("the worker's process did not end well: " + process_->errors());
    std::ifstream file(process_history());
    for (std::string line; std::getline(file, line);) {
      if (auto operation = operation_of(line)) history_.add(std::move(*operation));
    }
  }

  // Peace: whatever is left is completed by workers that do nothing else.
  void drain() {
    std::atomic<bool> done = false;
    std::vector<std::thread> workers;
    for (int number = 0; number < 4; ++number) {
      workers.emplace_back([this, &done, p = person("drain-" + std::to_string(number), true)]() mutable {
        work(std::move(p), Manner::diligent, history_, done);
      });
    }
    client::Client client({.addresses = {server_.address()}});
    const bool empty = eventually(
        [&] {
          const auto queues = client.queues();
          return queues && queues->queues.size() == 1 &&
                 queues->queues[0].waiting + queues->queues[0].leased == 0;
        },
        kDrainMs);
    if (!empty) tally_.complaints.push_back("the queue could not be drained");
    done = true;
    for (std::thread& one : workers) one.join();
  }

  Tally judge() {
    if (!server_.stop()) tally_.complaints.push_back("the server did not stop well");
    for (const std::string& said : server_.early_ends())
      tally_.complaints.push_back("the server ended by itself: " + said);
    const crash::Ran verified =
        crash::run({.command = {BATON_PROGRAM, "log", "verify", stage_.data(), "--full"}}, 120'000);
    if (verified.exit.code != 0) tally_.complaints.push_back("log verify: " + verified.errors);
    std::string trouble;
    const Log log = read_log(BATON_PROGRAM, stage_.data(), trouble);
    if (!trouble.empty()) tally_.complaints.push_back(trouble);

    const std::vector<Operation> history = history_.taken();
    const auto take = [&](const Complaints& more) {
      tally_.complaints.insert(tally_.complaints.end(), more.begin(), more.end());
    };
    take(check_order(history));
    take(check_against_log(history, log));
    take(check_tasks(history));
    // A wall clock that is ahead at a start ends leases early, and that is allowed.
    if (options_.setting != Setting::clock) take(check_ownership(history));
    const ResourceReport resource = check_resource(history);
    take(resource.complaints);
    const Totals totals = check_totals(history, log);
    take(totals.complaints);
    count(history, resource, totals);
    if (!tally_.complaints.empty() && options_.mutant == 0) keep(history);
    return std::move(tally_);
  }

  void count(const std::vector<Operation>& history, const ResourceReport& resource, const Totals& totals) {
    for (const Operation& o : history) {
      ++tally_.operations;
      tally_.unknown += o.outcome == Outcome::unknown;
      if (o.word == "EXHAUSTED") happened("refused for want of space");
    }
    if (options_.setting == Setting::power) happened("power cut in a flush", stage_.cut_in_flush());
    tally_.writes += resource.accepted;
    tally_.stale_writes += resource.stale;
    tally_.submitted += totals.submitted;
    tally_.recovered += totals.recovered;
    tally_.lost += totals.lost;
    tally_.phantom += totals.phantom;
    tally_.doubly_completed += totals.doubly_completed;
    tally_.repeated_work += totals.repeated_work;
  }

  // A history that was found wrong is worth more than the words about it.
  void keep(const std::vector<Operation>& history) {
    const std::string path =
        fmt::format("chaos-{}-{}.history", static_cast<int>(options_.setting), options_.seed);
    std::ofstream file(path);
    for (const Operation& operation : history) file << to_line(operation) << '\n';
    tally_.complaints.push_back(
        fmt::format("the history of seed {} ({}) is in {}", options_.seed, name_of(options_.setting), path));
  }

  const OrdealOptions options_;
  Stage& stage_;
  std::minstd_rand dice_;
  const TemporaryDirectory files_;
  Served server_;
  Proxy proxy_;
  History history_;
  std::atomic<bool> stops_ = false;
  std::vector<std::thread> people_;
  std::unique_ptr<crash::Child> process_;
  Tally tally_;
};

}  // namespace

Tally run_ordeal(const OrdealOptions& options) {
  Stage stage(options.setting, options.seed);
  if (!stage.is_ready()) return {};
  return Ordeal(options, stage).run();
}

}  // namespace baton::chaos
