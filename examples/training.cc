// A training loop that can be killed at any moment and goes on from its newest checkpoint, with as many ranks
// as it is given this time. The ranks are threads here; as processes they differ in how they join, and no
// more.
//
//   example_training DIRECTORY RANKS STEPS
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/distributed_checkpoint.h"
#include "checkpoint/in_process_collective.h"
#include "checkpoint/local_storage.h"

using namespace baton;
using namespace baton::checkpoint;

namespace {

constexpr std::uint64_t kRows = 10;
constexpr std::uint64_t kColumns = 1000;

// The rows of the weights that are this rank's.
TensorInfo my_rows(const Collective& ranks) {
  const std::uint64_t begin = kRows * ranks.rank() / ranks.world_size();
  const std::uint64_t end = kRows * (ranks.rank() + 1) / ranks.world_size();
  return {"weights", Dtype::f32, {kRows, kColumns}, {{begin, 0}, {end - begin, kColumns}}};
}

Status train(Collective& ranks, Storage& storage, std::uint64_t steps) {
  const TensorInfo info = my_rows(ranks);
  std::vector<float> weights(slice_bytes(info) / sizeof(float));
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(weights));

  // Where it was: from the newest checkpoint that is whole, whoever wrote it. NOT_FOUND says that there is
  // none, and nothing was read; after any other error the weights hold anything.
  DistributedCheckpoint checkpoint(ranks, storage);
  std::uint64_t step = 0;
  const std::vector<TensorTarget> wanted{{info, bytes}};
  if (auto loaded = checkpoint.load("latest", wanted, {.fall_back = true})) {
    step = loaded->metadata.training.step;
  } else if (loaded.error().code != Errc::not_found) {
    return std::unexpected(loaded.error());
  }
  if (ranks.rank() == 0) std::printf("%u ranks begin at step %lu\n", ranks.world_size(), step);

  while (step < steps) {
    ++step;
    for (float& weight : weights) weight += 1;
    if (step % 10 != 0) continue;
    // Comes back when the weights have been copied; they are written while training goes on.
    ShardData mine;
    mine.tensors.push_back({info, bytes});
    if (auto saving = checkpoint.save_async(step, mine, {}); !saving) return std::unexpected(saving.error());
  }
  if (auto saved = checkpoint.close(); !saved) return saved;  // of the last save, nobody has heard yet
  for (const float weight : weights) {
    if (weight != static_cast<float>(step))
      return failure(Errc::corrupt, "the weights are not those of this step");
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: example_training DIRECTORY RANKS STEPS\n"), 64;
  const auto world_size = static_cast<Rank>(std::atoi(argv[2]));
  auto storage = LocalStorage::open_directory(argv[1]);
  if (!storage) return std::fprintf(stderr, "%s\n", storage.error().message.c_str()), 1;

  InProcessGroup group(world_size);
  std::atomic<int> exit_code = 0;
  std::vector<std::jthread> threads;
  for (Rank rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      auto collective = group.join(rank);
      const Status trained = train(**collective, **storage, std::strtoull(argv[3], nullptr, 10));
      if (trained) return;
      std::fprintf(stderr, "rank %u: %s\n", rank, trained.error().message.c_str());
      exit_code = 1;
    });
  }
  threads.clear();  // joins them
  if (exit_code == 0) std::printf("trained up to step %s\n", argv[3]);
  return exit_code;
}
