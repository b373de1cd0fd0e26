// Ranks at a server program of their own.
#include "checkpoint/server_collective.h"
#include "tests/checkpoint/collective_subject.h"
#include "tests/served.h"

namespace baton::checkpoint {
namespace {

class AtServer final : public TestGroup {
 public:
  explicit AtServer(Rank world_size) : world_size_(world_size) {}
  Result<std::unique_ptr<Collective>> join(Rank rank) override {
    return join_at_server({.client = {.addresses = {served_.address()}},
                           .group = "job",
                           .rank = rank,
                           .world_size = world_size_});
  }

 private:
  Served served_{BATON_PROGRAM};
  const Rank world_size_;
};

}  // namespace

std::unique_ptr<TestGroup> group_at_server(Rank world_size) { return std::make_unique<AtServer>(world_size); }

}  // namespace baton::checkpoint
