// What ordeals come to, summed up.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/chaos/checks.h"

namespace baton::chaos {

struct Tally {
  unsigned rounds = 0;
  std::uint64_t operations = 0;
  std::uint64_t unknown = 0;  // of them
  std::uint64_t submitted = 0, recovered = 0, lost = 0, phantom = 0, doubly_completed = 0, repeated_work = 0;
  std::uint64_t writes = 0, stale_writes = 0;
  std::map<std::string, std::uint64_t> faults;  // that really happened, by kind
  Complaints complaints;

  void add(const Tally& other);
  std::string summary() const;
};

}  // namespace baton::chaos
