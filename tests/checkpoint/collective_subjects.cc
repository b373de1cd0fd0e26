#include "checkpoint/in_process_collective.h"
#include "tests/checkpoint/collective_subject.h"

namespace baton::checkpoint {
namespace {

class Threads final : public TestGroup {
 public:
  explicit Threads(Rank world_size) : group_(world_size) {}
  Result<std::unique_ptr<Collective>> join(Rank rank) override { return group_.join(rank); }

 private:
  InProcessGroup group_;
};

}  // namespace

const std::vector<CollectiveSubject>& collective_subjects() {
  static const std::vector<CollectiveSubject> all{
      {"InProcess", [](Rank world_size) { return std::make_unique<Threads>(world_size); }},
#ifdef BATON_PROGRAM
      {"AtServer", group_at_server},
#endif
  };
  return all;
}

}  // namespace baton::checkpoint
