// A job of processes that meet at a coordinator, while the coordinator and its ranks are killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <random>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/retention.h"
#include "tests/checkpoint/server_job.h"
#include "tests/checkpoint/world.h"
#include "tests/proxy.h"
#include "tests/served.h"

namespace baton::checkpoint {
namespace {

using ::testing::Each;

void kill_both_and_look(int kills) {
  const TemporaryDirectory directory;
  Served served(BATON_PROGRAM);
  Proxy proxy(served.port());
  std::mt19937 dice(13);
  Job job{.group = {}, .address = proxy.address(), .store = directory.path() + "/store", .first_step = 1};
  for (int round = 0; round < kills; ++round) {
    job.group = "job-" + std::to_string(round);
    job.world_size = static_cast<Rank>(dice() % 3 + 2);
    Processes ranks(job);
    std::optional<std::uint64_t> told = ranks.next_step();
    ASSERT_TRUE(told) << "round " << round << ": the job did not begin: " << ranks.errors();
    if (round % 2 == 0) {  // the coordinator: the job goes on as if nothing had happened
      ::usleep(static_cast<useconds_t>(dice() % 8000));  // when to strike: anywhere within a save
      served.kill();
      served.start();
      proxy.set_target(served.port());
      proxy.reset();
      for (int more = 0; more < 4; ++more) {
        told = ranks.next_step();
        ASSERT_TRUE(told) << "round " << round
                          << ": it did not go on when the coordinator was back: " << ranks.errors();
      }
    }
    ::usleep(static_cast<useconds_t>(dice() % 8000));
    ranks.signal(static_cast<Rank>(dice() % job.world_size), SIGKILL);
    while (const auto step = ranks.next_step()) told = step;
    ASSERT_TRUE(ranks.wait()) << "round " << round << ": a rank did not end well: " << ranks.errors();

    const auto storage = *LocalStorage::open_directory(job.store);
    const auto newest = find_checkpoint(*storage, "latest");
    ASSERT_TRUE(newest) << newest.error().message;
    const std::uint64_t step = newest->training.step;
    ASSERT_GE(step, *told) << "what was said to be committed is gone";
    ASSERT_THAT(load(*storage, static_cast<Rank>(dice() % 4 + 1), "", step), Each("fine"))
        << "round " << round;
    ASSERT_TRUE(prune(*storage, {.keep_last = 3}, Really::yes));
    job.first_step = step + 1;
  }
}

// C2, C3, C6
TEST(JobsAtACoordinator, LoseNothingWhenItOrOneOfThemIsKilled) { kill_both_and_look(6); }

// C2, C3, C6
TEST(LongJobsAtACoordinator, LoseNothingWhenItOrOneOfThemIsKilled) {
  if (std::getenv("BATON_LONG") == nullptr) GTEST_SKIP() << "set BATON_LONG=1";
  kill_both_and_look(500);
}

}  // namespace
}  // namespace baton::checkpoint
