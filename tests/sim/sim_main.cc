// sim: runs baton's coordinator in a simulated world.
#include <fmt/format.h>

#include <cerrno>
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

constexpr int kUsage = 64;

enum class Takes : std::uint8_t { nothing, number, file };
const std::map<std::string, Takes> kOptions = {
    {"--seeds", Takes::number},       {"--first", Takes::number},   {"--jobs", Takes::number},
    {"--seed", Takes::number},        {"--save", Takes::file},      {"--replay", Takes::file},
    {"--trace", Takes::nothing},      {"--canary", Takes::nothing}, {"--long", Takes::nothing},
    {"--trace-hash", Takes::nothing}, {"--help", Takes::nothing}};
// These mean something only together with another one.
constexpr std::pair<const char*, const char*> kBelongsTo[] = {
    {"--first", "--seeds"}, {"--jobs", "--seeds"}, {"--trace-hash", "--seeds"}, {"--save", "--seed"}};

struct Arguments {
  std::map<std::string, std::uint64_t> numbers;
  std::map<std::string, std::string> files;  // and what takes nothing

  bool has(const std::string& name) const { return numbers.contains(name) || files.contains(name); }
  std::uint64_t number(const std::string& name, std::uint64_t otherwise) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? otherwise : found->second;
  }
};

// A run that does something else than was asked for would be taken for a proof: anything odd is refused.
Result<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto option = kOptions.find(name);
    if (option == kOptions.end())
      return failure(Errc::invalid_request, fmt::format("there is no option '{}'", name));
    if (arguments.has(name)) return failure(Errc::invalid_request, name + " may be given only once");
    if (option->second == Takes::nothing) {
      arguments.files[name];
      continue;
    }
    if (i + 1 == argc) return failure(Errc::invalid_request, name + " needs a value");
    const std::string value = argv[++i];
    if (option->second == Takes::file) {
      arguments.files[name] = value;
      continue;
    }
    const char* end = value.data() + value.size();
    if (const auto read = std::from_chars(value.data(), end, arguments.numbers[name]);
        read.ec != std::errc{} || read.ptr != end) {
      return failure(Errc::invalid_request, fmt::format("{}: '{}' is not a number", name, value));
    }
  }
  for (const auto& [option, other] : kBelongsTo) {
    if (arguments.has(option) && !arguments.has(other))
      return failure(Errc::invalid_request, fmt::format("{} goes with {}", option, other));
  }
  for (const char* option : {"--seeds", "--jobs"}) {
    if (arguments.number(option, 1) == 0)
      return failure(Errc::invalid_request, fmt::format("{}: 0 shows nothing", option));
  }
  return arguments;
}

int complain(const std::string& what) {
  fmt::print(stderr, "sim: {}\n", what);
  return kUsage;
}

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path);
  out << text;
  out.close();
  return !out.fail();
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
  const bool stored = write_file(
      path, fmt::format("# {}: {}\n{}", once.violation->id, once.violation->what, to_text(small.scenario)));
  print_failure(small.scenario, *once.violation);
  fmt::print("{} of {} items are left after {} runs; ", small.scenario.items.size(), scenario.items.size(),
             small.runs);
  if (stored) {
    fmt::print("stored as {}; sim --replay {} --trace shows it again\n", path, path);
  } else {
    fmt::print("it could not be stored as {}: {}\n", path, std::strerror(errno));
  }
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
  const auto parsed = parse(argc, argv);
  if (!parsed) return complain(parsed.error().message + "; sim --help tells how it is used");
  const Arguments& arguments = *parsed;
  if (arguments.has("--help")) return fmt::print("{}", kHelp), 0;
  if (arguments.has("--long") && std::getenv("BATON_LONG") == nullptr) return kSkipped;
  if (arguments.has("--canary")) return canary_sings() ? 0 : 1;
  if (arguments.has("--replay")) {
    const std::string& path = arguments.files.at("--replay");
    std::ifstream in(path);
    if (!in) return complain(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
    const std::string text(std::istreambuf_iterator<char>(in), {});
    if (text.empty()) return complain(fmt::format("{}: there is no scenario in it", path));
    auto scenario = parse_scenario(text);
    if (!scenario) return complain(fmt::format("{}: {}", path, scenario.error().message));
    return run_one(*scenario, arguments);
  }
  if (arguments.has("--seed")) {
    const Scenario scenario = scenario_for(arguments.number("--seed", 0));
    if (arguments.has("--save") && !write_file(arguments.files.at("--save"), to_text(scenario))) {
      return complain(fmt::format("cannot write {}: {}", arguments.files.at("--save"), std::strerror(errno)));
    }
    return run_one(scenario, arguments);
  }
  if (arguments.has("--seeds")) return run_many(arguments);
  return complain("one of --seeds, --seed, --replay and --canary is needed; sim --help tells how it is used");
}

}  // namespace
}  // namespace baton::sim

int main(int argc, char** argv) { return baton::sim::main(argc, argv); }
