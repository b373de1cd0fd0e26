// Ranks that are processes, and meet at the process that started them: just enough to kill one of them.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/collective.h"

namespace baton::checkpoint {

class ProcessRanks {
 public:
  // Starts a process for each rank, which ends when `run` returns.
  ProcessRanks(Rank world_size, const std::function<void(Collective&)>& run);
  ~ProcessRanks();  // kills those that are left
  ProcessRanks(const ProcessRanks&) = delete;
  ProcessRanks& operator=(const ProcessRanks&) = delete;

  // Lets them meet until every process has ended. Asks `kill` before each of their messages is looked at: a
  // rank to be killed, or none.
  void serve(const std::function<std::optional<Rank>()>& kill);
  // Names of the operations that everybody completed, in order.
  const std::vector<std::string>& completed() const { return completed_; }

 private:
  struct Arrival {
    Operation operation;
    Result<Bytes> brought;
  };
  void take(Rank rank);
  void lose(Rank rank);
  void settle();
  void answer(Rank rank, const Result<std::vector<Bytes>>& what);
  void fail(const Error& error);

  std::vector<pid_t> processes_;
  std::vector<int> sockets_;  // -1: gone
  std::map<Rank, Arrival> arrivals_;
  std::map<Rank, Error> to_be_told_;  // of an operation that ended before they came
  std::optional<Error> lost_;
  std::vector<std::string> completed_;
};

}  // namespace baton::checkpoint
