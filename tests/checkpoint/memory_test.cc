// What is left where a thread does not get a piece of memory: each piece in turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <new>

#include "checkpoint/distributed_checkpoint.h"
#include "tests/checkpoint/short_of_memory.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

namespace fs = std::filesystem;

// Without each piece of memory that `action` asks for; `look` is called after each time.
void without_each_piece(const std::function<void()>& action, const std::function<void()>& look) {
  bool was_short = true;
  for (std::size_t pieces = 0; was_short; ++pieces) {
    {
      const ShortOfMemory memory(pieces);
      try {
        action();
      } catch (const std::bad_alloc&) {
      }
      was_short = memory.has_happened();
    }
    SCOPED_TRACE("after " + std::to_string(pieces) + " pieces");
    look();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

std::ptrdiff_t open_files() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

// C10
TEST(AFileWithoutMemory, IsNeitherLeftOpenNorThere) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_TRUE(storage->put_if_absent("there", bytes_of("x")));
  const std::ptrdiff_t before = open_files();
  without_each_piece([&] { (void)storage->create("new", 3 << 20); },
                     [&] {
                       ASSERT_EQ(open_files(), before);
                       ASSERT_FALSE(fs::exists(directory.path() + "/store/new"));
                     });
  without_each_piece([&] { (void)storage->open("there"); }, [&] { ASSERT_EQ(open_files(), before); });
}

// C9: a turn that nobody ends would be waited for by every later save
TEST(ASaveWithoutMemory, IsNotInTheWayOfLaterOnes) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  as_ranks(1, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, *storage);
    const State state({whole_tensor("w", Dtype::u8, {8})}, 1);
    const ShardData mine = state.shard();
    ASSERT_TRUE(checkpoint.save_async(1, mine, {}) && checkpoint.close());
    without_each_piece([&] { (void)checkpoint.save_async(2, mine, {}); },
                       [&] {
                         (void)checkpoint.close();
                         ASSERT_TRUE(checkpoint.save_async(3, mine, {}));
                         ASSERT_EQ(said(checkpoint.close()), "fine");
                       });
  });
}

}  // namespace
}  // namespace baton::checkpoint
