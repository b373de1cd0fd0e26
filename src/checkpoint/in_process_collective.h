// Threads of one process as ranks: for tests, for examples, and for whoever has all of a job in one process.
#pragma once

#include <memory>

#include "checkpoint/collective.h"

namespace baton::checkpoint {

class InProcessGroup {
 public:
  explicit InProcessGroup(Rank world_size);
  ~InProcessGroup();
  InProcessGroup(const InProcessGroup&) = delete;
  InProcessGroup& operator=(const InProcessGroup&) = delete;

  // A rank's place, until the Collective goes. If somebody has or had that place, a new generation begins, in
  // which every rank has to join again.
  Result<std::unique_ptr<Collective>> join(Rank rank);

  struct State;

 private:
  // Shared with the collectives, which may outlive the group and each other.
  const std::shared_ptr<State> state_;
};

}  // namespace baton::checkpoint
