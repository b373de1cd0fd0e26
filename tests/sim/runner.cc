#include "tests/sim/runner.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <type_traits>
#include <vector>

#include "base/check.h"

namespace baton::sim {
namespace {

constexpr std::uint64_t kRepeatOneIn = 50;

Tally run_some(std::uint64_t first, std::uint64_t count, unsigned step) {
  Tally tally;
  for (std::uint64_t seed = first; seed < first + count; seed += step) {
    const Scenario scenario = scenario_for(seed);
    const Run once = run(scenario);
    tally.add(once, seed);
    if (!once.violation && seed % kRepeatOneIn == 0) {
      ++tally.repeated;
      if (run(scenario).hash != once.hash) {
        std::fprintf(stderr, "seed %llu took another course the second time\n",
                     static_cast<unsigned long long>(seed));
        tally.failed_seed = std::min(tally.failed_seed, seed);
      }
    }
    if (tally.failed_seed != UINT64_MAX) break;
  }
  return tally;
}

static_assert(std::is_trivially_copyable_v<Tally>, "it comes through a pipe");

}  // namespace

void Tally::add(const Run& run, std::uint64_t seed) {
  ++seeds;
  steps += run.steps;
  crashes += run.crashes;
  entries += run.entries;
  refused += run.refused;
  hash += mix(run.hash, seed);
  faults.add(run.faults);
  coverage.add(run.coverage);
  if (run.violation) failed_seed = std::min(failed_seed, seed);
}

void Tally::add(const Tally& other) {
  seeds += other.seeds;
  steps += other.steps;
  crashes += other.crashes;
  entries += other.entries;
  refused += other.refused;
  repeated += other.repeated;
  hash += other.hash;
  failed_seed = std::min(failed_seed, other.failed_seed);
  faults.add(other.faults);
  coverage.add(other.coverage);
}

Tally run_seeds(std::uint64_t first, std::uint64_t count, unsigned jobs) {
  if (jobs <= 1) return run_some(first, count, 1);
  std::vector<int> pipes;
  for (unsigned job = 0; job < jobs; ++job) {
    int ends[2];
    BATON_CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    BATON_CHECK(child >= 0);
    if (child == 0) {
      close(ends[0]);
      const Tally tally = count > job ? run_some(first + job, count - job, jobs) : Tally{};
      const bool sent = write(ends[1], &tally, sizeof tally) == static_cast<ssize_t>(sizeof tally);
      _exit(sent ? 0 : 1);
    }
    close(ends[1]);
    pipes.push_back(ends[0]);
  }
  Tally all;
  for (const int from : pipes) {
    Tally tally;
    std::size_t got = 0;
    while (got < sizeof tally) {
      const ssize_t more = read(from, reinterpret_cast<char*>(&tally) + got, sizeof tally - got);
      if (more <= 0) break;
      got += static_cast<std::size_t>(more);
    }
    close(from);
    BATON_CHECK(got == sizeof tally);  // else the process has died, and has said why
    all.add(tally);
  }
  while (wait(nullptr) > 0) {
  }
  return all;
}

}  // namespace baton::sim
