// A job of processes that meet at a coordinator, and save step after step.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>

#include "base/time.h"
#include "checkpoint/collective.h"
#include "tests/crash/child.h"

namespace baton::checkpoint {

struct Job {
  std::string group;
  std::string address;
  std::string store;
  Rank world_size = 0;
  std::uint64_t first_step = 0;  // whose state is the model in this version, and so on
  Duration time_to_live = seconds(10);
};

// The ranks of a job as processes, which end when a save fails, and are gone with this.
class Processes {
 public:
  explicit Processes(const Job& job);

  // The next step that was committed; none if rank 0 has ended, or nothing was heard for a minute.
  std::optional<std::uint64_t> next_step();
  void signal(Rank rank, int number) { ranks_[rank].signal(number); }
  // Ended by themselves, but for one that was killed.
  bool wait();
  bool wait_for(Rank rank);
  std::string errors() const;  // what they wrote to standard error so far

 private:
  std::deque<crash::Child> ranks_;
  std::set<Rank> killed_;
};

}  // namespace baton::checkpoint
