// A rank whose disk is slow: the others hear who it is, and how far it got.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>

#include "tests/checkpoint/faulty_storage.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Call = FaultyStorage::Call;

// C2, C10
TEST(ASlowDisk, IsToldToTheOthersWithItsRankAndProgress) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  constexpr int kPiecesBeforeItIsSlow = 4;
  std::latch is_slow(1);
  std::latch others_have_heard(1);
  int pieces = 0;
  FaultyStorage slow(*storage, [&](Call call, const std::string& path) -> Status {
    const bool is_slow_one = path.ends_with("r00001.safetensors");
    if (call == Call::append && is_slow_one && ++pieces == kPiecesBeforeItIsSlow) {
      is_slow.count_down();
      others_have_heard.wait();
    }
    if (call == Call::finish && !is_slow_one) is_slow.wait();
    return {};
  });
  const auto large = [](Rank rank, Rank ranks) {
    return std::vector{rows("w", Dtype::u8, {8, 1 << 20}, rank, ranks)};
  };
  as_ranks(2, [&](Collective& collective) {
    const State state(large(collective.rank(), 2), 1);
    const auto saved = CheckpointCoordinator(collective, slow)
                           .coordinate_save("step-1", [&]() -> Result<ShardData> { return state.shard(); },
                                            {.deadline = seconds(2)});
    EXPECT_THAT(said(saved), AllOf(HasSubstr("DEADLINE_EXCEEDED"), HasSubstr("save step-1 written"),
                                   HasSubstr("missing: rank 1"), HasSubstr("doing write of step-1/a0001-"),
                                   HasSubstr("of 4 MiB")));
    if (collective.rank() == 0) others_have_heard.count_down();
  });
}

}  // namespace
}  // namespace baton::checkpoint
