// Commands that write a checkpoint in another form, or make one of that.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint/checkpoint_search.h"
#include "checkpoint/convert.h"
#include "checkpoint/local_storage.h"
#include "cli/checkpoint_actions.h"
#include "cli/checkpoint_bar.h"
#include "cli/checkpoint_report.h"
#include "cli/quantities.h"
#include "cli/table.h"

namespace baton::cli {

using namespace checkpoint;

namespace {

namespace fs = std::filesystem;
using Object = decltype(CheckpointMetadata::objects)::value_type;

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

}  // namespace

int export_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options);
  const fs::path target = fs::absolute(options.other);
  // A directory for --flat is made, one in which it is to lie is not: a misspelt path is no wish for one.
  std::error_code absent;
  if (const fs::path above = target.parent_path(); !fs::is_directory(above, absent))
    return complain({Errc::not_found, "there is no directory " + above.string()}, options);
  auto to = LocalStorage::open_directory(options.flat ? target.string() : target.parent_path().string());
  if (!to) return complain(to.error(), options);
  CheckpointBar bar(options.flat ? 2 * file_bytes(*metadata) : metadata->tensor_bytes());
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
  CheckpointBar bar(bytes);
  const auto done = import_files(**from, paths, storage, step_prefix(options.step), options.step,
                                 {.sha256 = options.sha256, .progress = bar.shown()});
  bar.clear();
  return tell(done, options, done ? "as " + to_text(done->id) : "");
}

int reshard_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options);
  CheckpointBar bar(metadata->tensor_bytes());
  const auto done = reshard(storage, *metadata, options.ranks, bar.shown());
  bar.clear();
  return tell(done, options, done ? "as " + to_text(done->id) : "");
}

}  // namespace baton::cli
