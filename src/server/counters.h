// What happened since the start, counted for operators. One thread counts.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"

namespace baton::server {

// Counts under names that live for ever. They are few, and a name mostly lies where it lay the last time.
class Tally {
 public:
  std::uint64_t& operator[](std::string_view name) {
    for (auto& [known, count] : counts_) {
      if (known.data() == name.data() || known == name) return count;
    }
    return counts_.emplace_back(name, 0).second;
  }
  auto begin() const { return counts_.begin(); }
  auto end() const { return counts_.end(); }

 private:
  std::vector<std::pair<std::string_view, std::uint64_t>> counts_;
};

struct Counters {
  Instant since;
  Tally commands;                      // by verb
  Tally rejections;                    // by code
  Tally entries;                       // by event
  std::uint64_t connections_resp = 0;  // open now
  std::uint64_t connections_http = 0;
  std::uint64_t sessions = 0;  // of the Redis protocol, begun ever; numbers them
  std::uint64_t connections_total = 0;
  std::uint64_t connections_refused = 0;
  std::uint64_t unsent_bytes = 0;     // replies that wait for their readers
  std::uint64_t fetched_bytes = 0;    // read, or to be read, for replies that are not written yet
  std::uint64_t half_bytes = 0;       // of commands that have come in part
  std::uint64_t lanes_looked_at = 0;  // for tasks to lease
};

// One's part of a sum, which goes with it.
class Part {
 public:
  explicit Part(std::uint64_t& sum) : sum_(sum) {}
  ~Part() { sum_ -= own_; }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  void set(std::uint64_t own) { sum_ += own - std::exchange(own_, own); }

 private:
  std::uint64_t& sum_;
  std::uint64_t own_ = 0;
};

}  // namespace baton::server
