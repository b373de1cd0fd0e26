// A job of processes that meet at a coordinator, and save step after step.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "checkpoint/collective.h"

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
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // The next step that was committed; none if all of them ended, or nothing was heard for a minute.
  std::optional<std::uint64_t> next_step();
  void signal(Rank rank, int number) const;
  // Ended by themselves, but for one that was killed.
  bool wait();
  bool wait_for(Rank rank);

 private:
  std::vector<pid_t> children_;  // 0: it has ended
  int killed_ = 0;
  int told_ = -1;
};

}  // namespace baton::checkpoint
