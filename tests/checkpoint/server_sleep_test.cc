// A rank that is suspended in the middle of a save, is given up, and wakes up when the world has gone on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/retention.h"
#include "tests/checkpoint/server_job.h"
#include "tests/checkpoint/world.h"
#include "tests/served.h"

namespace baton::checkpoint {
namespace {

using ::testing::Each;

// C2, C3, C6
TEST(ARankThatSleepsThroughASave, EndsWhenItWakesUpAndHarmsNothing) {
  constexpr Rank kRanks = 3;
  const TemporaryDirectory directory;
  const Served served(BATON_PROGRAM);
  std::mt19937 dice(17);
  Job job{.group = {},
          .address = served.address(),
          .store = directory.path() + "/store",
          .world_size = kRanks,
          .first_step = 1,
          .time_to_live = seconds(5)};
  for (const Rank sleeper : {0U, 1U}) {
    job.group = "job-" + std::to_string(sleeper);
    Processes ranks(job);
    ASSERT_TRUE(ranks.next_step()) << "the job did not begin";
    ::usleep(static_cast<useconds_t>(dice() % 8000));  // when to strike: anywhere within a save
    ranks.signal(sleeper, SIGSTOP);
    for (Rank rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(rank == sleeper || ranks.wait_for(rank)) << "rank " << rank << " did not end well";
    }

    // Somebody goes on with the same state, refers to the files of the last save, and prunes what is older.
    const auto storage = *LocalStorage::open_directory(job.store);
    const auto newest = find_checkpoint(*storage, "latest");
    ASSERT_TRUE(newest) << said(newest);
    const std::uint64_t step = newest->training.step;
    ASSERT_THAT(load(*storage, 2, "", step), Each("fine"));
    ASSERT_THAT(save(*storage, kRanks, step + 1, step, model, {.incremental = true}), Each("fine"));
    ASSERT_TRUE(prune(*storage, {.keep_last = 1}, Really::yes));

    ranks.signal(sleeper, SIGCONT);
    EXPECT_TRUE(ranks.wait_for(sleeper)) << "it did not end well";
    EXPECT_EQ(find_checkpoint(*storage, "latest")->training.step, step + 1);
    EXPECT_THAT(load(*storage, 2, "", step), Each("fine"));
    job.first_step = step + 2;
  }
}

}  // namespace
}  // namespace baton::checkpoint
