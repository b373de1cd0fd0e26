#include "tests/checkpoint/server_job.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/check.h"
#include "checkpoint/distributed_checkpoint.h"
#include "checkpoint/server_collective.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

// Tells of each step that was committed.
[[noreturn]] void be_rank(const Job& job, Rank rank, int tell) {
  const auto ranks = join_at_server({.client = {.addresses = {job.address}},
                                     .group = job.group,
                                     .rank = rank,
                                     .world_size = job.world_size,
                                     .time_to_live = job.time_to_live});
  if (!ranks) ::_exit(1);
  const auto storage = *LocalStorage::open_directory(job.store);
  for (std::uint64_t step = job.first_step;; ++step) {
    const State state(model(rank, job.world_size), step);
    const SaveOptions options{.incremental = step % 3 == 0, .deadline = seconds(60)};
    if (!DistributedCheckpoint(**ranks, *storage).save(step, state.shard(), options)) ::_exit(0);
    if (rank == 0 && ::write(tell, &step, sizeof step) != ssize_t{sizeof step}) ::_exit(2);
  }
}

}  // namespace

Processes::Processes(const Job& job) {
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

Processes::~Processes() {
  for (Rank rank = 0; rank < children_.size(); ++rank) signal(rank, SIGKILL);
  wait();
  ::close(told_);
}

std::optional<std::uint64_t> Processes::next_step() {
  pollfd readable{.fd = told_, .events = POLLIN, .revents = 0};
  std::uint64_t step = 0;
  if (::poll(&readable, 1, 60'000) <= 0 || ::read(told_, &step, sizeof step) != ssize_t{sizeof step})
    return {};
  return step;
}

void Processes::signal(Rank rank, int number) const {
  if (children_[rank] != 0) ::kill(children_[rank], number);
}

bool Processes::wait() {
  bool all_well = true;
  for (Rank rank = 0; rank < children_.size(); ++rank) all_well &= wait_for(rank);
  return all_well;
}

bool Processes::wait_for(Rank rank) {
  const pid_t child = std::exchange(children_[rank], 0);
  if (child == 0) return true;
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) ++killed_;
  return killed_ <= 1 && (WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
}

}  // namespace baton::checkpoint
