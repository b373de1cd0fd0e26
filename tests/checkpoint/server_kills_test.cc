// A job of processes that meet at a coordinator, while the coordinator and its ranks are killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <random>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/distributed_checkpoint.h"
#include "checkpoint/retention.h"
#include "checkpoint/server_collective.h"
#include "tests/checkpoint/world.h"
#include "tests/proxy.h"
#include "tests/served.h"

namespace baton::checkpoint {
namespace {

using ::testing::Each;

struct Job {
  std::string group;
  std::string address;
  std::string store;
  Rank world_size = 0;
  std::uint64_t first_step = 0;
};

// Saves step after step, and tells of each that was committed, until a save fails.
[[noreturn]] void be_rank(const Job& job, Rank rank, int tell) {
  const auto ranks = join_at_server({.client = {.addresses = {job.address}},
                                     .group = job.group,
                                     .rank = rank,
                                     .world_size = job.world_size});
  if (!ranks) ::_exit(1);
  const auto storage = *LocalStorage::open_directory(job.store);
  for (std::uint64_t step = job.first_step;; ++step) {
    const State state(model(rank, job.world_size), step);
    const SaveOptions options{.incremental = step % 3 == 0, .deadline = seconds(60)};
    if (!DistributedCheckpoint(**ranks, *storage).save(step, state.shard(), options)) ::_exit(0);
    if (rank == 0 && ::write(tell, &step, sizeof step) != ssize_t{sizeof step}) ::_exit(2);
  }
}

// The ranks of a job as processes, which are gone with it.
class Processes {
 public:
  explicit Processes(const Job& job) {
    int ends[2];
    BATON_CHECK(::pipe2(ends, O_CLOEXEC) == 0);
    for (Rank rank = 0; rank < job.world_size; ++rank) {
      const pid_t child = ::fork();
      BATON_CHECK(child >= 0);
      if (child == 0) {
        // Connections of the test that lived on here would be heard to break by nobody.
        constexpr int kTell = 3;
        if (ends[1] != kTell) ::dup2(ends[1], kTell);
        ::close_range(kTell + 1, ~0U, 0);
        be_rank(job, rank, kTell);
      }
      children_.push_back(child);
    }
    ::close(ends[1]);
    told_ = ends[0];
  }
  ~Processes() {
    for (const pid_t child : children_) ::kill(child, SIGKILL);
    wait();
    ::close(told_);
  }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // The next step that was committed; none if all of them ended, or nothing was heard for a minute.
  std::optional<std::uint64_t> next_step() {
    pollfd readable{.fd = told_, .events = POLLIN, .revents = 0};
    std::uint64_t step = 0;
    if (::poll(&readable, 1, 60'000) <= 0 || ::read(told_, &step, sizeof step) != ssize_t{sizeof step})
      return {};
    return step;
  }
  void kill(Rank rank) { ::kill(children_[rank], SIGKILL); }
  // Ended by themselves, but for one that was killed.
  bool wait() {
    int killed = 0;
    for (const pid_t child : std::exchange(children_, {})) {
      int status = 0;
      ::waitpid(child, &status, 0);
      if (WIFSIGNALED(status)) ++killed;
      if (WIFEXITED(status) && WEXITSTATUS(status) != 0) return false;
    }
    return killed <= 1;
  }

 private:
  std::vector<pid_t> children_;
  int told_ = -1;
};

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
    ASSERT_TRUE(told) << "round " << round << ": the job did not begin";
    if (round % 2 == 0) {  // the coordinator: the job goes on as if nothing had happened
      ::usleep(static_cast<useconds_t>(dice() % 8000));  // when to strike: anywhere within a save
      served.kill();
      served.start();
      proxy.set_target(served.port());
      proxy.reset();
      for (int more = 0; more < 4; ++more) {
        told = ranks.next_step();
        ASSERT_TRUE(told) << "round " << round << ": it did not go on when the coordinator was back";
      }
    }
    ::usleep(static_cast<useconds_t>(dice() % 8000));
    ranks.kill(static_cast<Rank>(dice() % job.world_size));
    while (const auto step = ranks.next_step()) told = step;
    ASSERT_TRUE(ranks.wait()) << "round " << round << ": a rank did not end well";

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
