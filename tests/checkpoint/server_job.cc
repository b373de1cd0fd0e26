#include "tests/checkpoint/server_job.h"

#include <csignal>
#include <cstdlib>

namespace baton::checkpoint {

// Programs of their own: a copy of this process, with threads at work, may be born with a lock that nobody
// in it will ever give back.
Processes::Processes(const Job& job) {
  for (Rank rank = 0; rank < job.world_size; ++rank)
    ranks_.emplace_back(
        crash::ChildOptions{.command = {BATON_SAVING_RANK, job.group, job.address, job.store,
                                        std::to_string(job.world_size), std::to_string(job.first_step),
                                        std::to_string(job.time_to_live.ms), std::to_string(rank)}});
}

std::optional<std::uint64_t> Processes::next_step() {
  std::optional<std::uint64_t> step;
  ranks_[0].listen(crash::after_ms(60'000), [&](const std::string& line) {
    step = std::strtoull(line.c_str(), nullptr, 10);
    return false;
  });
  return step;
}

bool Processes::wait() {
  bool all_well = true;
  for (Rank rank = 0; rank < ranks_.size(); ++rank) all_well &= wait_for(rank);
  return all_well;
}

bool Processes::wait_for(Rank rank) {
  const crash::Exit exit = ranks_[rank].wait(crash::after_ms(90'000));
  if (exit.signal != 0) killed_.insert(rank);
  return exit.code == 0 || (exit.signal == SIGKILL && killed_.size() <= 1);
}

std::string Processes::errors() const {
  std::string all;
  for (const crash::Child& rank : ranks_) all += rank.errors();
  return all;
}

}  // namespace baton::checkpoint
