#include "cli/checkpoint_actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_validator.h"
#include "checkpoint/convert.h"
#include "checkpoint/difference.h"
#include "checkpoint/distributed_checkpoint.h"
#include "checkpoint/in_process_collective.h"
#include "checkpoint/local_storage.h"
#include "cli/checkpoint_report.h"
#include "cli/progress.h"
#include "cli/quantities.h"
#include "cli/table.h"

namespace baton::cli {

using namespace checkpoint;

namespace {

namespace fs = std::filesystem;

constexpr int kExitDifferent = 1;  // as of diff
constexpr int kExitDamaged = 2;

// A bar of MiB on the terminal.
class Bar {
 public:
  explicit Bar(std::uint64_t bytes) : all_(bytes) {}
  checkpoint::Progress shown() {
    return [this](std::uint64_t bytes) { progress_.show(bytes >> 20, bytes, all_); };
  }

 private:
  const std::uint64_t all_;
  cli::Progress progress_{"MiB"};
};

std::uint64_t file_bytes(const CheckpointMetadata& metadata) {
  std::uint64_t sum = 0;
  for (const ShardMetadata& shard : metadata.shards) sum += shard.bytes;
  return sum;
}

int verify_one(Storage& storage, const Attempt& attempt, const CheckpointOptions& options) {
  ValidationResult result;
  if (attempt.trouble) result.errors.push_back(attempt.trouble->message);
  if (attempt.metadata) {
    Bar bar(file_bytes(*attempt.metadata));
    result = CheckpointValidator::verify(storage, *attempt.metadata, {.progress = bar.shown()});
  }
  if (options.json) {
    fmt::print("{}\n", JsonObject()
                           .text("checkpoint", to_text(attempt.id))
                           .boolean("whole", result.is_valid())
                           .literal("errors", json_list(result.errors))
                           .literal("warnings", json_list(result.warnings))
                           .whole());
  } else {
    fmt::print("{}: {}\n", to_text(attempt.id), result.is_valid() ? "whole" : "damaged");
    for (const std::string& error : result.errors) fmt::print("  {}\n", printable(error, 500));
    for (const std::string& warning : result.warnings) fmt::print("  {}\n", printable(warning, 500));
  }
  return result.is_valid() ? 0 : kExitDamaged;
}

int tell(const Result<Converted>& converted, const CheckpointOptions& options, const std::string& where) {
  if (!converted) return complain(converted.error(), options.format());
  if (options.json) {
    fmt::print("{}\n", JsonObject()
                           .text("checkpoint", to_text(converted->id))
                           .number("tensors", converted->tensors)
                           .number("bytes", converted->bytes)
                           .whole());
  } else {
    fmt::print("{}, {} {}\n", counted(converted->tensors, "tensor"), size_text(converted->bytes), where);
  }
  return 0;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int list_checkpoints(Storage& storage, const CheckpointOptions& options) {
  const auto attempts = list_attempts(storage);
  if (!attempts) return complain(attempts.error(), options.format());
  print_attempts(*attempts, options.format());
  return 0;
}

int inspect_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options.format());
  print_metadata(*metadata, options.format());
  return 0;
}

int verify_checkpoints(Storage& storage, const CheckpointOptions& options) {
  auto attempts = find_attempts(storage, options.maybe_name.value_or("latest"));
  if (!attempts) return complain(attempts.error(), options.format());
  if (attempts->empty()) return complain({Errc::not_found, "there is no such checkpoint"}, options.format());
  if (options.maybe_name) attempts->resize(1);  // the newest of them; without a name, all
  int exit_code = 0;
  for (const Attempt& attempt : *attempts)
    exit_code = std::max(exit_code, verify_one(storage, attempt, options));
  return exit_code;
}

int diff_checkpoints(Storage& storage, const CheckpointOptions& options) {
  const auto first = find_checkpoint(storage, options.name);
  if (!first) return complain(first.error(), options.format());
  const auto second = find_checkpoint(storage, options.other);
  if (!second) return complain(second.error(), options.format());
  const auto difference = compare(storage, *first, *second);
  if (!difference) return complain(difference.error(), options.format());
  print_difference(*difference, options.format());
  return difference->is_empty() ? 0 : kExitDifferent;
}

int export_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options.format());
  const fs::path target = fs::absolute(options.other);
  // A directory for --flat is made, one in which it is to lie is not: a misspelt path is no wish for one.
  if (const fs::path above = target.parent_path(); !fs::is_directory(above))
    return complain({Errc::not_found, "there is no directory " + above.string()}, options.format());
  auto to = LocalStorage::open_directory(options.flat ? target.string() : target.parent_path().string());
  if (!to) return complain(to.error(), options.format());
  Bar bar(file_bytes(*metadata));
  const auto done = options.flat
                        ? export_flat(storage, *metadata, **to, bar.shown())
                        : export_whole(storage, *metadata, **to, target.filename().string(), bar.shown());
  return tell(done, options, "in " + options.other);
}

int import_checkpoint(Storage& storage, const CheckpointOptions& options) {
  auto from = LocalStorage::open_existing("/");
  if (!from) return complain(from.error(), options.format());
  std::vector<std::string> paths;
  for (const std::string& file : options.files) paths.push_back(fs::absolute(file).relative_path().string());
  const auto done = import_files(**from, paths, storage, step_prefix(options.step), options.step);
  return tell(done, options, done ? "as " + to_text(done->id) : "");
}

int reshard_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options.format());
  const auto done = reshard(storage, *metadata, options.ranks);
  return tell(done, options, done ? "as " + to_text(done->id) : "");
}

int prune_checkpoints(Storage& storage, const CheckpointOptions& options) {
  const auto attempts = list_attempts(storage);
  if (!attempts) return complain(attempts.error(), options.format());
  if (!options.json) {
    const auto fates = judge(storage, *attempts, options.policy);
    if (!fates) return complain(fates.error(), options.format());
    for (const Fate& fate : *fates)
      fmt::print("{} {}: {}\n", fate.is_kept ? "keep  " : "remove", to_text(fate.id), fate.why);
  }
  const auto removed = prune(storage, options.policy, options.really());
  if (!removed) return complain(removed.error(), options.format());
  print_removed(*removed, options.really(), options.format());
  return 0;
}

int collect_checkpoint_garbage(Storage& storage, const CheckpointOptions& options) {
  const auto removed = collect_garbage(storage, options.abandoned_after, wall_clock().ms, options.really());
  if (!removed) return complain(removed.error(), options.format());
  if (!options.json) {
    for (const CheckpointId& id : removed->checkpoints) fmt::print("{}\n", to_text(id));
  }
  print_removed(*removed, options.really(), options.format());
  return 0;
}

int pin_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options.format());
  const auto pinned = pin(storage, metadata->id.prefix);
  if (!pinned) return complain(pinned.error(), options.format());
  if (!options.json) fmt::print("{} is kept until it is unpinned\n", metadata->id.prefix);
  return 0;
}

int unpin_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options.format());
  const auto unpinned = unpin(storage, metadata->id.prefix);
  if (!unpinned) return complain(unpinned.error(), options.format());
  if (!options.json) fmt::print("{} may be pruned\n", metadata->id.prefix);
  return 0;
}

// Saves and loads a state of this size once, and takes it away again.
int bench_checkpoints(Storage& storage, const CheckpointOptions& options) {
  const std::uint64_t bytes = options.mebibytes << 20;
  const AlignedMemory memory = allocate_aligned(bytes);
  for (std::uint64_t at = 0; at < bytes; at += 8) store(memory.get() + at, at * 0x9e3779b97f4a7c15U);
  const TensorInfo info{"bench", Dtype::u8, {bytes}, whole({bytes})};
  InProcessGroup group(1);
  const auto alone = *group.join(0);
  ShardData mine;
  mine.tensors.push_back({info, {memory.get(), bytes}});
  const auto saving = std::chrono::steady_clock::now();
  const auto saved =
      CheckpointCoordinator(*alone, storage)
          .coordinate_save("bench", [&]() -> Result<ShardData> { return std::move(mine); }, {});
  if (!saved) return complain(saved.error(), options.format());
  const double save_s = seconds_since(saving);
  const std::vector<TensorTarget> wanted{{info, {memory.get(), bytes}}};
  const auto loading = std::chrono::steady_clock::now();
  const auto loaded = CheckpointLoader(*alone, storage).coordinate_load(to_text(saved->id), wanted, {});
  const double load_s = seconds_since(loading);
  (void)storage.remove(manifest_path(saved->id));
  (void)storage.remove_directory(directory_of(saved->id));
  if (!loaded) return complain(loaded.error(), options.format());
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  if (options.json) {
    fmt::print("{}\n", JsonObject()
                           .text("storage", storage.describe())
                           .number("bytes", bytes)
                           .decimal("save_gb_per_s", gigabytes / save_s)
                           .decimal("load_gb_per_s", gigabytes / load_s)
                           .whole());
  } else {
    fmt::print("{}\nsave, durable: {:.2f} GB/s\nload, verified: {:.2f} GB/s\n", storage.describe(),
               gigabytes / save_s, gigabytes / load_s);
  }
  return 0;
}

}  // namespace baton::cli
