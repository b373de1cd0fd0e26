// A job that is killed while it saves: whenever that happens, what was committed is there, whole and unmixed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <random>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/checkpoint_validator.h"
#include "checkpoint/distributed_checkpoint.h"
#include "checkpoint/retention.h"
#include "tests/checkpoint/process_ranks.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::Each;

constexpr Rank kRanks = 3;

// Saves step after step, and tells of each that was committed, until it is killed.
[[noreturn]] void save_for_ever(const std::string& path, std::uint64_t step, int tell) {
  const auto storage = *LocalStorage::open_directory(path);
  as_ranks(kRanks, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, *storage);
    for (std::uint64_t next = step;; ++next) {
      const State state(model(collective.rank(), kRanks), next);
      const SaveOptions options{.incremental = next % 3 == 0};
      const auto saved = checkpoint.save(next, state.shard(), options);
      if (!saved) ::_exit(1);
      if (collective.rank() == 0 && ::write(tell, &next, sizeof next) != ssize_t{sizeof next}) ::_exit(2);
    }
  });
  ::_exit(3);
}

// What the job told before it was killed; waits for at most `ms` after the first word.
std::uint64_t last_told(int from, int ms) {
  std::uint64_t last = 0;
  pollfd readable{.fd = from, .events = POLLIN, .revents = 0};
  for (int wait = 60'000; ::poll(&readable, 1, wait) > 0; wait = ms) {
    if (::read(from, &last, sizeof last) != ssize_t{sizeof last}) break;
    if (last % 4 == static_cast<std::uint64_t>(ms) % 4) break;
  }
  return last;
}

std::uint64_t drained(int from, std::uint64_t last) {
  std::uint64_t step = 0;
  while (::read(from, &step, sizeof step) == ssize_t{sizeof step}) last = step;
  return last;
}

void kill_and_look(int kills) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/store";
  std::mt19937 dice(11);
  std::uint64_t next = 1;
  for (int round = 0; round < kills; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t job = ::fork();
    ASSERT_GE(job, 0);
    if (job == 0) {
      ::close(pipe[0]);
      save_for_ever(path, next, pipe[1]);
    }
    ::close(pipe[1]);
    std::uint64_t told = last_told(pipe[0], static_cast<int>(dice() % 40));
    ::usleep(static_cast<useconds_t>(dice() % 8000));  // when to strike: anywhere within a save
    ::kill(job, SIGKILL);
    int status = 0;
    ::waitpid(job, &status, 0);
    told = drained(pipe[0], told);
    ::close(pipe[0]);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the job ended by itself with " << WEXITSTATUS(status);

    const auto storage = *LocalStorage::open_directory(path);
    const auto newest = find_checkpoint(*storage, "latest");
    ASSERT_TRUE(newest) << said(newest);
    const std::uint64_t step = newest->training.step;
    ASSERT_GE(step, told) << "what was said to be committed is gone";
    ASSERT_THAT(load(*storage, static_cast<Rank>(dice() % 4 + 1), "", step), Each("fine"))
        << "round " << round;
    ASSERT_TRUE(CheckpointValidator::verify(*storage, *newest, {}).is_valid());
    // Nothing is under way, so all that is left is garbage.
    ASSERT_TRUE(collect_garbage(*storage, {}, INT64_MAX / 2, Really::yes));
    ASSERT_TRUE(prune(*storage, {.keep_last = 3}, Really::yes));
    next = step + 1;
  }
}

// Saves step after step until a save fails, which ends it.
void save_until_it_fails(Collective& collective, Storage& storage, std::uint64_t step) {
  for (;; ++step) {
    const State state(model(collective.rank(), kRanks), step);
    if (!DistributedCheckpoint(collective, storage).save(step, state.shard(), {})) return;
  }
}

// How many saves everybody heard were committed.
std::uint64_t committed_in(const ProcessRanks& ranks) {
  return static_cast<std::uint64_t>(std::ranges::count_if(
      ranks.completed(), [](const std::string& name) { return name.ends_with(" committed"); }));
}

// One rank is killed, whatever it is doing; the others find out, and end by themselves.
void kill_a_rank_and_look(int kills) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::mt19937 dice(12);
  std::uint64_t next = 1;
  for (int round = 0; round < kills; ++round) {
    ProcessRanks ranks(kRanks,
                       [&](Collective& collective) { save_until_it_fails(collective, *storage, next); });
    std::uint64_t messages = 9 + dice() % 30;  // the first save is over before
    ranks.serve([&]() -> std::optional<Rank> {
      if (messages == 0 || --messages > 0) return {};
      ::usleep(static_cast<useconds_t>(dice() % 4000));  // when to strike: anywhere within a step
      return static_cast<Rank>(dice() % kRanks);
    });
    const auto newest = find_checkpoint(*storage, "latest");
    ASSERT_TRUE(newest) << said(newest);
    const std::uint64_t step = newest->training.step;
    ASSERT_GE(step, next + committed_in(ranks) - 1) << "what was said to be committed is gone";
    ASSERT_THAT(load(*storage, static_cast<Rank>(dice() % 4 + 1), "", step), Each("fine"))
        << "round " << round;
    const auto attempts = list_attempts(*storage);
    for (const Attempt& attempt : *attempts)
      ASSERT_NE(attempt.state, AttemptState::undecided) << "nobody gave it up: " << to_text(attempt.id);
    ASSERT_TRUE(prune(*storage, {.keep_last = 3}, Really::yes));
    next = step + 1;
  }
}

// C6
TEST(KilledSaves, LeaveTheNewestCommittedCheckpointWhole) { kill_and_look(20); }

// C2, C6: those who are left hear of it, and give the attempt up
TEST(KilledRanks, LeaveTheNewestCommittedCheckpointWhole) { kill_a_rank_and_look(20); }

// C6
TEST(LongKilledRanks, LeaveTheNewestCommittedCheckpointWhole) {
  if (std::getenv("BATON_LONG") == nullptr) GTEST_SKIP() << "set BATON_LONG=1";
  kill_a_rank_and_look(500);
}

// C6
TEST(LongKilledSaves, LeaveTheNewestCommittedCheckpointWhole) {
  if (std::getenv("BATON_LONG") == nullptr) GTEST_SKIP() << "set BATON_LONG=1";
  kill_and_look(500);
}

}  // namespace
}  // namespace baton::checkpoint
