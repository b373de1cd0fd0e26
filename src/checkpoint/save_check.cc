#include "checkpoint/save_check.h"

#include <fmt/format.h>

#include <map>

#include "base/utf8.h"
#include "checkpoint/catalog.h"
#include "wire/text.h"

namespace baton::checkpoint {

Status check_name(const std::string& prefix, std::uint64_t step) {
  if (auto fits = check_new_prefix(prefix); !fits) return fits;
  const auto named = step_in(prefix);
  if (!named || step == 0 || step == *named) return {};
  return failure(
      Errc::invalid_request,
      fmt::format("\"{}\" is called after another step than the {} in its metadata; give it the name "
                  "\"{}\", or one that is no step",
                  prefix, step, step_prefix(step)));
}

Status check_data(const ShardData& mine) {
  for (const TensorSource& tensor : mine.tensors) {
    if (auto fits = check(tensor.info); !fits) return fits;
    if (tensor.data.size() != slice_bytes(tensor.info))
      return failure(
          Errc::invalid_request,
          fmt::format("tensor \"{}\" comes with {} bytes, and its slice {} has {}", tensor.info.name,
                      tensor.data.size(), to_text(tensor.info.slice), slice_bytes(tensor.info)));
  }
  for (const auto& [name, text] : mine.objects) {
    if (!is_utf8(name))
      return failure(
          Errc::invalid_request,
          fmt::format("the name of an object has to be UTF-8, and \"{}\" is not", wire::as_utf8(name)));
    if (auto fits = MetadataSerializer::check_object(text); !fits)
      return failure(fits.error().code, fmt::format("object \"{}\" {}", name, fits.error().message));
  }
  return {};
}

Status check_written(Storage& storage, const CheckpointMetadata& metadata) {
  const std::string directory = directory_of(metadata.id) + "/";
  const auto entries = storage.list(directory_of(metadata.id));
  if (!entries && entries.error().code != Errc::not_found) return std::unexpected(entries.error());
  std::map<std::string, std::uint64_t> listed;
  if (entries)
    for (const StorageEntry& entry : *entries) listed[directory + entry.name] = entry.bytes;

  for (const ShardMetadata& shard : metadata.shards) {
    if (!shard.path.starts_with(directory)) continue;  // of an older checkpoint, where it was found
    if (const auto seen = listed.find(shard.path); seen != listed.end() && seen->second == shard.bytes)
      continue;
    const auto reader = storage.open(shard.path);  // for a network's listings may be late
    if (reader && (*reader)->size() == shard.bytes) continue;
    if (!reader && reader.error().code != Errc::not_found) return std::unexpected(reader.error());
    // Whoever gave the attempt up has removed its files, and the one who commits hears of that.
    if (storage.get(manifest_path(metadata.id))) return {};
    const std::string here = path_in(storage, shard.path);
    return failure(
        Errc::conflict,
        fmt::format("rank {} has written {}, and here {}; all ranks have to save to the same place: a "
                    "directory of a file system that they share, or a bucket",
                    shard.rank, shard.path,
                    reader ? fmt::format("{} has {} bytes, not {}", here, (*reader)->size(), shard.bytes)
                           : fmt::format("there is no {}", here)));
  }
  return {};
}

}  // namespace baton::checkpoint
