// How fast a save and a load are.
#include <fmt/format.h>

#include <chrono>
#include <new>

#include "checkpoint/aligned_memory.h"
#include "checkpoint/distributed_checkpoint.h"
#include "checkpoint/in_process_collective.h"
#include "checkpoint/open_storage.h"
#include "cli/checkpoint_actions.h"
#include "cli/table.h"

namespace baton::cli {

using namespace checkpoint;

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

// Saves and loads a state of this size once, and takes it away again. It lies below a name that no checkpoint
// has: whoever is killed meanwhile leaves none that could pass for the latest.
int bench_checkpoints(Storage& place, const CheckpointOptions& options) {
  const std::uint64_t bytes = options.mebibytes << 20;
  AlignedMemory memory;
  try {
    memory = allocate_aligned(bytes);
  } catch (const std::bad_alloc&) {
    return complain({Errc::exhausted,
                     fmt::format("there is no memory for {} MiB; try fewer: --mebibytes", options.mebibytes),
                     {}},
                    options);
  }
  for (std::uint64_t at = 0; at < bytes; at += 8) store(memory.get() + at, at * 0x9e3779b97f4a7c15U);
  const TensorInfo info{"bench", Dtype::u8, {bytes}, whole({bytes})};
  const std::string below = ".bench";
  const auto opened = open_storage(options.directory + "/" + below, Opening::made);
  if (!opened) return complain(opened.error(), options);
  Storage& storage = **opened;
  InProcessGroup group(1);
  const auto alone = *group.join(0);
  ShardData mine;
  mine.tensors.push_back({info, {memory.get(), bytes}});
  const auto saving = std::chrono::steady_clock::now();
  const auto saved =
      CheckpointCoordinator(*alone, storage)
          .coordinate_save("bench", [&]() -> Result<ShardData> { return std::move(mine); }, {});
  if (!saved) return complain(saved.error(), options);
  const double save_s = seconds_since(saving);
  const std::vector<TensorTarget> wanted{{info, {memory.get(), bytes}}};
  const auto loading = std::chrono::steady_clock::now();
  const auto loaded = CheckpointLoader(*alone, storage).coordinate_load(to_text(saved->id), wanted, {});
  const double load_s = seconds_since(loading);
  (void)storage.remove(manifest_path(saved->id));
  (void)storage.remove_directory(directory_of(saved->id));
  if (const auto others = storage.list(saved->id.prefix); others && others->empty())
    (void)storage.remove_directory(saved->id.prefix);
  if (const auto others = place.list(below); others && others->empty()) (void)place.remove_directory(below);
  if (!loaded) return complain(loaded.error(), options);
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  if (options.json) {
    fmt::print("{}\n", JsonObject()
                           .text("storage", place.describe())
                           .number("bytes", bytes)
                           .decimal("save_gb_per_s", gigabytes / save_s)
                           .decimal("load_gb_per_s", gigabytes / load_s)
                           .whole());
  } else {
    fmt::print("{}\nsave, durable: {:.2f} GB/s\nload, verified: {:.2f} GB/s\n", place.describe(),
               gigabytes / save_s, gigabytes / load_s);
  }
  return 0;
}

}  // namespace baton::cli
