#include "tests/crash/crash_loop.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <random>

#include "engine/verify.h"
#include "log/posix_disk.h"
#include "tests/crash/child.h"
#include "tests/temporary_directory.h"

namespace baton::crash {
namespace {

constexpr std::int64_t kStartLimitMs = 20'000;
constexpr int kExitLogFailed = 74;
constexpr unsigned kVerifyEvery = 5;  // rounds

// The rounds on one directory.
class Life {
 public:
  Life(const LoopOptions& options, LoopResult& result, std::mt19937_64& dice)
      : options_(options), result_(result), dice_(dice), expectation_(result.tally) {}

  void run_round(unsigned round);
  void verify();

 private:
  void judge(const Exit& exit, const std::string& errors);
  std::uint64_t below(std::uint64_t bound) { return dice_() % bound; }
  bool hear(const std::string& line) {
    started_ = expectation_.take(line) || started_;
    return !started_;
  }
  void listen_for(Child& child, std::int64_t ms) {
    child.listen(after_ms(ms), [&](const std::string& line) { return hear(line), true; });
  }
  void complain(const std::string& what) {
    ++result_.tally.lost;
    result_.tally.complaints.push_back(what);
  }

  const LoopOptions& options_;
  LoopResult& result_;
  std::mt19937_64& dice_;
  TemporaryDirectory directory_;
  const std::string data_ = directory_.path() + "/data";
  Shim shim_{directory_.path() + "/page", data_};
  Expectation expectation_;
  bool started_ = false;
};

void Life::run_round(unsigned round) {
  shim_.reset();
  shim_.seed = dice_();
  shim_.early_percent = below(3) * 15;
  shim_.sync_us = below(3) * 200;
  if (options_.fail_syncs) shim_.fail = fmt::format("sync:{}:EIO:once", 1 + below(100));
  ChildOptions child_options{
      .command = {options_.worker, data_, std::to_string(dice_()), std::to_string(round)}};
  if (options_.cut == Cut::power) child_options.environment = shim_.environment();
  if (options_.mutant != 0)
    child_options.environment.emplace_back("BATON_MUTANT", std::to_string(options_.mutant));

  Child child(child_options);
  started_ = false;
  const std::int64_t runs_ms = 5 + static_cast<std::int64_t>(below(196));
  const bool from_the_start = below(4) == 0;  // then recovery itself is killed now and then
  if (!from_the_start) {
    child.listen(after_ms(kStartLimitMs), [&](const std::string& line) { return hear(line); });
  }
  if (below(8) == 0) {
    listen_for(child, runs_ms / 2);
    child.signal(SIGSTOP);
    listen_for(child, 10 + static_cast<std::int64_t>(below(60)));
    child.signal(SIGCONT);
    ++result_.stopped;
  }
  listen_for(child, runs_ms);
  child.signal(SIGKILL);
  const Exit exit = child.wait(after_ms(kStartLimitMs));
  listen_for(child, 0);
  expectation_.end_round();
  ++result_.rounds;
  judge(exit, child.errors());
  if (!started_ && !from_the_start) ++result_.refused_starts;
  if (!started_ && from_the_start) ++result_.killed_while_starting;
  if (shim_.page().syncs_begun > shim_.page().syncs_ended) ++result_.killed_in_flush;
  result_.sectors_early += shim_.page().sectors_early;
}

void Life::judge(const Exit& exit, const std::string& errors) {
  if (exit.signal == SIGKILL) return;
  const bool stopped =
      exit.code == kExitLogFailed && errors.find("stopping without answering") != std::string::npos;
  const bool refused = exit.code == 1 && errors.find("IO_FAILED") != std::string::npos;  // at the start
  if (stopped) ++result_.ended_with_74;
  if (options_.fail_syncs && (stopped || refused)) return;
  complain(fmt::format("the process ended by itself, code {} signal {}: {}", exit.code, exit.signal, errors));
}

void Life::verify() {
  auto disk = log::PosixDisk::open_read_only(data_);
  if (!disk) return complain(disk.error().message);
  const auto report = engine::verify(**disk, false);
  if (!report) {
    if (report.error().code != Errc::not_found) complain(report.error().message);
    return;
  }
  ++result_.verified;
  if (report->finding == engine::Finding::torn_tail) ++result_.torn;
  if (report->finding != engine::Finding::intact && report->finding != engine::Finding::torn_tail) {
    complain("verify: " + report->message);
  }
}

}  // namespace

LoopResult run_crash_loop(const LoopOptions& options) {
  LoopResult result;
  std::mt19937_64 dice(options.seed);
  while (result.rounds < options.rounds) {
    Life life(options, result, dice);
    for (unsigned round = 1; round <= options.rounds_per_directory && result.rounds < options.rounds;
         ++round) {
      life.run_round(round);
      if (round % kVerifyEvery == 0) life.verify();
      if (options.stop_early && !result.tally.complaints.empty()) return result;
    }
  }
  return result;
}

std::string LoopResult::summary() const {
  std::string text = fmt::format("{} rounds, {} acks, {} lost, {} phantom, {} doubly valid leases", rounds,
                                 tally.acks, tally.lost, tally.phantom, tally.doubly_valid);
  text += fmt::format("; {} completions, {} snapshots, {} refusals, {} outcomes nobody was told",
                      tally.completions, tally.snapshots, tally.refused, tally.unknown);
  text += fmt::format("; killed {} times while starting and {} times in a flush, stopped {} times",
                      killed_while_starting, killed_in_flush, stopped);
  text += fmt::format(
      "; {} ended by a failed sync; {} sectors early; {} directories verified, {} with a torn tail",
      ended_with_74, sectors_early, verified, torn);
  for (const std::string& complaint : tally.complaints) text += "\n  " + complaint;
  return text;
}

}  // namespace baton::crash
