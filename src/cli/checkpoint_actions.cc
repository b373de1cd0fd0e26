#include "cli/checkpoint_actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
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
using Object = decltype(CheckpointMetadata::objects)::value_type;

constexpr int kExitDifferent = 1;  // as of diff
constexpr int kExitDamaged = 2;

// A bar of MiB on the terminal.
class Bar {
 public:
  explicit Bar(std::uint64_t bytes) : all_(bytes) {}
  checkpoint::Progress shown() {
    return [this](std::uint64_t bytes) { progress_.show(bytes >> 20, bytes, all_); };
  }
  void clear() { progress_.clear(); }  // before anything is printed

 private:
  const std::uint64_t all_;
  cli::Progress progress_{"MiB"};
};

// Of files, and nobody knows how many it will be.
class RemovalBar {
 public:
  Removing shown() {
    return [this](const Removed& removed) { progress_.show(removed.files.size(), 0, 0); };
  }
  void clear() { progress_.clear(); }

 private:
  cli::Progress progress_{"files"};
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
  if (!converted) return complain(converted.error(), options);
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

// Whatever became of the checkpoint that is called so, by any of its names.
std::string prefix_of(Storage& storage, const std::string& name) {
  if (auto search = CheckpointSearch::begin(storage, name)) {
    if (const auto newest = search->next()) return newest->id.prefix;
  }
  const auto step = number_in(name);
  return step ? step_prefix(*step) : name.substr(0, name.find('/'));
}

// What `ls` goes on to show, and why.
void tell_left(const Removed& removed, Duration abandoned_after) {
  if (removed.young > 0)
    fmt::print("leaves {}: a sign of life within {}, so it may be under way (--abandoned-after)\n",
               counted(removed.young, "unfinished save"), time_text(abandoned_after));
  if (removed.remembered > 0)
    fmt::print("leaves {}: that a save was given up is remembered for {}\n",
               counted(removed.remembered, "aborted attempt"), time_text(kRememberedFor));
}

void tell_pinned(const std::string& prefix, bool is_pinned, const CheckpointOptions& options) {
  if (options.json) {
    fmt::print("{}\n", JsonObject().text("checkpoint", prefix).boolean("pinned", is_pinned).whole());
  } else {
    fmt::print("{} {}\n", prefix, is_pinned ? "is kept until it is unpinned" : "may be pruned");
  }
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int complain(const Error& error, const CheckpointOptions& options) {
  const int exit_code = complain(error, options.format());
  if (error.code == Errc::corrupt) return kExitDamaged;
  return exit_code == kExitRefused ? options.exit_if_refused : exit_code;
}

int list_checkpoints(Storage& storage, const CheckpointOptions& options) {
  const auto attempts = list_attempts(storage);
  if (!attempts) return complain(attempts.error(), options);
  print_attempts(*attempts, options.format());
  const auto unreadable = std::ranges::count(*attempts, AttemptState::unreadable, &Attempt::state);
  return unreadable == 0 ? 0 : kExitDamaged;
}

int inspect_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options);
  print_metadata(*metadata, options.format());
  return 0;
}

int verify_checkpoints(Storage& storage, const CheckpointOptions& options) {
  auto search = CheckpointSearch::begin(storage, options.maybe_name.value_or("latest"));
  if (!search) return complain(search.error(), options);
  auto attempt = search->next();
  if (!attempt) return complain(search->nothing_found(), options);
  int exit_code = 0;
  for (; attempt; attempt = search->next()) {
    exit_code = std::max(exit_code, verify_one(storage, *attempt, options));
    if (options.maybe_name) break;  // the newest of that name; without one, all
  }
  return exit_code;
}

int diff_checkpoints(Storage& storage, const CheckpointOptions& options) {
  const auto first = find_checkpoint(storage, options.name);
  if (!first) return complain(first.error(), options);
  const auto second = find_checkpoint(storage, options.other);
  if (!second) return complain(second.error(), options);
  Bar bar(first->tensor_bytes());
  const auto difference = compare(storage, *first, *second, bar.shown());
  bar.clear();
  if (!difference) return complain(difference.error(), options);
  print_difference(*difference, options.format());
  return difference->is_empty() ? 0 : kExitDifferent;
}

int export_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options);
  const fs::path target = fs::absolute(options.other);
  // A directory for --flat is made, one in which it is to lie is not: a misspelt path is no wish for one.
  if (const fs::path above = target.parent_path(); !fs::is_directory(above))
    return complain({Errc::not_found, "there is no directory " + above.string()}, options);
  auto to = LocalStorage::open_directory(options.flat ? target.string() : target.parent_path().string());
  if (!to) return complain(to.error(), options);
  Bar bar(options.flat ? 2 * file_bytes(*metadata) : metadata->tensor_bytes());
  const auto done = options.flat
                        ? export_flat(storage, *metadata, **to, bar.shown())
                        : export_whole(storage, *metadata, **to, target.filename().string(), bar.shown());
  bar.clear();
  const int exit_code = tell(done, options, "in " + options.other);
  const auto values = std::ranges::count_if(metadata->objects, is_plain_value, &Object::first);
  if (done && values > 0 && !options.flat && !options.json)
    fmt::print("left out {}: such a file holds tensors alone; --flat writes all there is\n",
               counted(static_cast<std::uint64_t>(values), "plain value"));
  return exit_code;
}

int import_checkpoint(Storage& storage, const CheckpointOptions& options) {
  auto from = LocalStorage::open_existing("/");
  if (!from) return complain(from.error(), options);
  std::vector<std::string> paths;
  std::uint64_t bytes = 0;
  for (const std::string& file : options.files) {
    paths.push_back(fs::absolute(file).relative_path().string());
    std::error_code unknown;  // which opening it tells
    if (const auto size = fs::file_size(file, unknown); !unknown) bytes += size;
  }
  Bar bar(bytes);
  const auto done = import_files(**from, paths, storage, step_prefix(options.step), options.step,
                                 {.sha256 = options.sha256, .progress = bar.shown()});
  bar.clear();
  return tell(done, options, done ? "as " + to_text(done->id) : "");
}

int reshard_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options);
  Bar bar(metadata->tensor_bytes());
  const auto done = reshard(storage, *metadata, options.ranks, bar.shown());
  bar.clear();
  return tell(done, options, done ? "as " + to_text(done->id) : "");
}

int prune_checkpoints(Storage& storage, const CheckpointOptions& options) {
  const auto attempts = list_attempts(storage);
  if (!attempts) return complain(attempts.error(), options);
  if (!options.json) {
    const auto fates = judge(storage, *attempts, options.policy);
    if (!fates) return complain(fates.error(), options);
    for (const Fate& fate : *fates)
      fmt::print("{} {}: {}\n", fate.is_kept ? "keep  " : "remove", to_text(fate.id), fate.why);
  }
  RemovalBar bar;
  const auto removed = prune(storage, options.policy, options.really(), bar.shown());
  bar.clear();
  if (!removed) return complain(removed.error(), options);
  print_removed(*removed, options.really(), options.format());
  return 0;
}

int collect_checkpoint_garbage(Storage& storage, const CheckpointOptions& options) {
  RemovalBar bar;
  const auto removed =
      collect_garbage(storage, options.abandoned_after, wall_clock().ms, options.really(), bar.shown());
  bar.clear();
  if (!removed) return complain(removed.error(), options);
  if (!options.json) {
    for (const CheckpointId& id : removed->checkpoints) fmt::print("{}\n", to_text(id));
  }
  print_removed(*removed, options.really(), options.format());
  if (!options.json) tell_left(*removed, options.abandoned_after);
  return 0;
}

int pin_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options);
  const auto pinned = pin(storage, metadata->id.prefix);
  if (!pinned) return complain(pinned.error(), options);
  tell_pinned(metadata->id.prefix, true, options);
  return 0;
}

// Also one that is damaged, or gone.
int unpin_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const std::string prefix = prefix_of(storage, options.name);
  if (const auto metadata = find_checkpoint(storage, options.name); !metadata) {
    if (!check_prefix(prefix) || !storage.get(pin_path(prefix))) return complain(metadata.error(), options);
  }
  if (const auto unpinned = unpin(storage, prefix); !unpinned) return complain(unpinned.error(), options);
  tell_pinned(prefix, false, options);
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
  if (!loaded) return complain(loaded.error(), options);
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
