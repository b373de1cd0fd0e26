// One rank of a job, as a program: it saves step after step, and ends when a save fails. Rank 0 tells of each
// step that was committed.
#include <cstdio>
#include <cstdlib>

#include "checkpoint/distributed_checkpoint.h"
#include "checkpoint/server_collective.h"
#include "tests/checkpoint/server_job.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

int run(const Job& job, Rank rank) {
  const auto ranks = join_at_server({.client = {.addresses = {job.address}},
                                     .group = job.group,
                                     .rank = rank,
                                     .world_size = job.world_size,
                                     .time_to_live = job.time_to_live});
  if (!ranks) return std::fprintf(stderr, "%s\n", ranks.error().message.c_str()), 1;
  const auto storage = *LocalStorage::open_directory(job.store);
  for (std::uint64_t step = job.first_step;; ++step) {
    const State state(model(rank, job.world_size), step);
    const SaveOptions options{.incremental = step % 3 == 0, .deadline = seconds(60)};
    const auto saved = DistributedCheckpoint(**ranks, *storage).save(step, state.shard(), options);
    if (!saved) return std::fprintf(stderr, "step %ju: %s\n", step, saved.error().message.c_str()), 0;
    if (rank == 0) std::printf("%ju\n", step), std::fflush(stdout);
  }
}

}  // namespace
}  // namespace baton::checkpoint

int main(int count, char** words) {
  if (count != 8) return 64;
  const auto number = [&](int at) { return std::strtoull(words[at], nullptr, 10); };
  using baton::checkpoint::Rank;
  return baton::checkpoint::run({.group = words[1],
                                 .address = words[2],
                                 .store = words[3],
                                 .world_size = static_cast<Rank>(number(4)),
                                 .first_step = number(5),
                                 .time_to_live = baton::milliseconds(static_cast<std::int64_t>(number(6)))},
                                static_cast<Rank>(number(7)));
}
