// What the tests of collectives need of an implementation: groups of ranks. A test is run for each of them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/collective.h"

namespace baton::checkpoint {

class TestGroup {
 public:
  virtual ~TestGroup() = default;
  virtual Result<std::unique_ptr<Collective>> join(Rank rank) = 0;
};

struct CollectiveSubject {
  std::string name;
  std::function<std::unique_ptr<TestGroup>(Rank world_size)> make;
};
std::unique_ptr<TestGroup> group_at_server(Rank world_size);
// Those that come with baton.
const std::vector<CollectiveSubject>& collective_subjects();

// Runs one thread for each rank, and joins it to the group there.
inline void on_every_rank(TestGroup& group, Rank world_size, const std::function<void(Collective&)>& what) {
  std::vector<std::jthread> threads;
  threads.reserve(world_size);
  for (Rank rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto collective = group.join(rank);
      if (collective) what(**collective);
    });
  }
}

}  // namespace baton::checkpoint
