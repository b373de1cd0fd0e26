#include "tests/chaos/tally.h"

#include <fmt/format.h>

namespace baton::chaos {

void Tally::add(const Tally& other) {
  rounds += other.rounds;
  operations += other.operations, unknown += other.unknown;
  submitted += other.submitted, recovered += other.recovered, lost += other.lost, phantom += other.phantom;
  doubly_completed += other.doubly_completed, repeated_work += other.repeated_work;
  writes += other.writes, stale_writes += other.stale_writes;
  for (const auto& [fault, times] : other.faults) faults[fault] += times;
  complaints.insert(complaints.end(), other.complaints.begin(), other.complaints.end());
}

std::string Tally::summary() const {
  std::string text = fmt::format(
      "{} rounds: {} operations, {} of unknown outcome; {} tasks acknowledged, {} more found\n"
      "lost {}, phantom {}, completed twice {}; work repeated {} times; {} writes, {} stale ones refused\n",
      rounds, operations, unknown, submitted, recovered, lost, phantom, doubly_completed, repeated_work,
      writes, stale_writes);
  for (const auto& [fault, times] : faults) text += fmt::format("  {:<26}{:>7}\n", fault, times);
  return text;
}

}  // namespace baton::chaos
