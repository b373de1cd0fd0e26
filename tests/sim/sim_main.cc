// sim: runs baton's coordinator in a simulated world.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "tests/sim/runner.h"
#include "tests/sim/shrink.h"

namespace baton::sim {
namespace {

constexpr const char* kHelp =
    R"(usage: sim --seeds N [--first S] [--jobs J]    run N seeds; fails if one breaks an invariant
       sim --seed S [--save FILE] [--trace]      run one seed; store its scenario
       sim --replay FILE [--trace]               run a stored scenario
       sim --trace-hash --seeds N                one hash over N seeds, to compare two builds by
       sim --canary                              runs what has to fail, and succeeds if it does
  --long    do nothing (exit code 77) unless BATON_LONG is set

A seed that fails is shrunk to sim-<invariant>-<seed>.scn and its timeline is printed.
)";

constexpr int kSkipped = 77;
// A run this long has to have met every fault, and one this long every cell of the coverage table.
constexpr std::uint64_t kAllFaultsFrom = 200;
constexpr std::uint64_t kAllCellsFrom = 2000;

struct Arguments {
  std::map<std::string, std::string> values;
  bool has(const std::string& name) const { return values.contains(name); }
  std::uint64_t number(const std::string& name, std::uint64_t otherwise) const {
    const auto found = values.find(name);
    if (found == values.end()) return otherwise;
    std::uint64_t number = otherwise;
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), number);
    return number;
  }
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool has_value = i + 1 < argc && std::strncmp(argv[i + 1], "--", 2) != 0;
    arguments.values[name] = has_value ? argv[++i] : "";
  }
  return arguments;
}

void print_failure(const Scenario& scenario, const Violation& violation) {
  const Run again = run(scenario, true);
  const std::size_t shown = std::min<std::size_t>(again.lines.size(), 60);
  for (std::size_t i = again.lines.size() - shown; i < again.lines.size(); ++i)
    fmt::print("{}\n", again.lines[i]);
  fmt::print("FAILED {}: {}\n", violation.id, violation.what);
}

int run_one(const Scenario& scenario, const Arguments& arguments) {
  const Run once = run(scenario, arguments.has("--trace"));
  for (const std::string& line : once.lines) fmt::print("{}\n", line);
  fmt::print("seed {}: {} steps, {} crashes, {} entries, {} ms simulated, hash {:016x}{}\n", scenario.seed,
             once.steps, once.crashes, once.entries, once.simulated_ms, once.hash,
             once.refused ? ", refused to start" : "");
  if (!once.violation) return 0;
  fmt::print("FAILED {}: {}\n", once.violation->id, once.violation->what);
  return 1;
}

int shrink_and_tell(std::uint64_t seed) {
  const Scenario scenario = scenario_for(seed);
  const Run once = run(scenario);
  if (!once.violation) return 1;  // it was not the same twice, which was reported
  fmt::print("seed {} fails: {}: {}\nshrinking …\n", seed, once.violation->id, once.violation->what);
  std::fflush(stdout);
  const Shrunk small = shrink(scenario, once.violation->id);
  std::string name = once.violation->id;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  const std::string path = fmt::format("sim-{}-{}.scn", name.substr(0, 40), seed);
  std::ofstream(path) << "# " << once.violation->id << ": " << once.violation->what << "\n"
                      << to_text(small.scenario);
  print_failure(small.scenario, *once.violation);
  fmt::print("{} of {} items are left after {} runs; stored as {}; sim --replay {} --trace shows it again\n",
             small.scenario.items.size(), scenario.items.size(), small.runs, path, path);
  return 1;
}

bool canary_sings() {
  const Run run_of_it = run(canary());
  if (run_of_it.violation && run_of_it.violation->id == "I2") return true;
  fmt::print("FAILED: the canary went unnoticed, so nothing that follows means anything\n");
  return false;
}

int run_many(const Arguments& arguments) {
  if (!canary_sings()) return 1;
  const std::uint64_t count = arguments.number("--seeds", 100);
  const std::uint64_t first = arguments.number("--first", 0);
  const auto began = std::chrono::steady_clock::now();
  const Tally tally = run_seeds(first, count, static_cast<unsigned>(arguments.number("--jobs", 1)));
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (arguments.has("--trace-hash")) {
    fmt::print("{:016x}\n", tally.hash);
    return tally.failed_seed == UINT64_MAX ? 0 : 1;
  }
  fmt::print(
      "{} seeds, {} steps, {} crashes, {} entries, {} refused to start after a lie, {} run twice\n"
      "{:.1f} s, {:.0f} steps/s\n",
      tally.seeds, tally.steps, tally.crashes, tally.entries, tally.refused, tally.repeated, took,
      static_cast<double>(tally.steps) / took);
  if (tally.failed_seed != UINT64_MAX) return shrink_and_tell(tally.failed_seed);
  fmt::print("{}{}", tally.faults.table(), tally.coverage.table());
  int status = 0;
  if (count < kAllFaultsFrom) return status;
  for (const std::string& fault : tally.faults.missing())
    status = 1, fmt::print("FAILED: never happened: {}\n", fault);
  if (count < kAllCellsFrom) return status;
  for (const std::string& cell : tally.coverage.missing())
    status = 1, fmt::print("FAILED: never reached: {}\n", cell);
  return status;
}

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  if (arguments.has("--long") && std::getenv("BATON_LONG") == nullptr) return kSkipped;
  if (arguments.has("--canary")) return canary_sings() ? 0 : 1;
  if (arguments.has("--replay")) {
    std::ifstream in(arguments.values.at("--replay"));
    auto scenario = parse_scenario(std::string(std::istreambuf_iterator<char>(in), {}));
    if (!in.is_open() || !scenario) {
      fmt::print(stderr, "sim: {}\n", scenario ? "cannot open the scenario" : scenario.error().message);
      return 2;
    }
    return run_one(*scenario, arguments);
  }
  if (arguments.has("--seed")) {
    const Scenario scenario = scenario_for(arguments.number("--seed", 0));
    if (arguments.has("--save")) std::ofstream(arguments.values.at("--save")) << to_text(scenario);
    return run_one(scenario, arguments);
  }
  if (arguments.has("--seeds")) return run_many(arguments);
  fmt::print("{}", kHelp);
  return 2;
}

}  // namespace
}  // namespace baton::sim

int main(int argc, char** argv) { return baton::sim::main(argc, argv); }
