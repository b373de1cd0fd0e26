// The state digest: a sum of one hash per fact, so that changing a fact costs two hashes however many there
// are. Two states with the same facts have the same digest, however they came about.
#pragma once

#include <cstdint>

#include "core/state.h"

namespace baton::core {

std::uint64_t fact_hash(const State& state, const Task& task);
std::uint64_t fact_hash(const State& state, const Lease& lease);
std::uint64_t fact_hash(const Ending& ending);
std::uint64_t paused_hash(const Queue& queue);

// The digest computed anew from every fact, to compare with the one that was kept up.
std::uint64_t full_digest(const State& state);

// While a task is being rewritten, its old fact is out of the digest; afterwards the new one is in.
class TaskRewrite {
 public:
  TaskRewrite(State& state, Task& task) : state_(state), task_(task) {
    state.digest -= fact_hash(state, task);
  }
  ~TaskRewrite() { state_.digest += fact_hash(state_, task_); }
  TaskRewrite(const TaskRewrite&) = delete;
  TaskRewrite& operator=(const TaskRewrite&) = delete;

 private:
  State& state_;
  Task& task_;
};

}  // namespace baton::core
