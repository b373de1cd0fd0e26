#include "checkpoint/convert.h"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <thread>

#include "checkpoint/checkpoint_coordinator.h"
#include "checkpoint/checkpoint_loader.h"
#include "checkpoint/in_process_collective.h"
#include "checkpoint/load_plan.h"
#include "checkpoint/safetensors.h"

namespace baton::checkpoint {
namespace {

std::vector<TensorInfo> whole_tensors(const CheckpointMetadata& metadata) {
  std::vector<TensorInfo> all;
  std::set<std::string> seen;
  for (const ShardMetadata& shard : metadata.shards)
    for (const TensorMetadata& tensor : shard.tensors)
      if (seen.insert(tensor.info.name).second)
        all.push_back(
            {tensor.info.name, tensor.info.dtype, tensor.info.global_shape, whole(tensor.info.global_shape)});
  return all;
}

Status copy_file(Storage& from, const ShardMetadata& shard, Storage& to, const std::string& path) {
  auto reader = from.open(shard.path);
  if (!reader) return std::unexpected(reader.error());
  auto writer = to.create(path, (*reader)->size());
  if (!writer) return std::unexpected(writer.error());
  auto copied = (*reader)->read({{0, (*reader)->size()}},
                                [&](std::uint64_t, ByteView piece) { return (*writer)->append(piece); });
  if (!copied) return copied;
  return (*writer)->finish();
}

// A file of safetensors in memory, as slices.
Result<ShardData> read_file(Storage& from, const std::string& path) {
  const auto damaged = [&](const Error& error) { return failure(error.code, path + ": " + error.message); };
  auto reader = from.open(path);
  if (!reader) return std::unexpected(reader.error());
  const std::uint64_t size = (*reader)->size();
  ShardData file;
  file.data = allocate_aligned(size);
  auto read = (*reader)->read({{0, size}}, [&](std::uint64_t offset, ByteView piece) -> Status {
    std::ranges::copy(piece, file.data.get() + offset);
    return {};
  });
  if (!read) return std::unexpected(read.error());
  const ByteView bytes(file.data.get(), size);
  auto header = safetensors_header_bytes(bytes.first(std::min<std::uint64_t>(size, 8)), size);
  if (!header) return damaged(header.error());
  auto tensors = parse_safetensors(text_of(bytes.subspan(8, *header)), size);
  if (!tensors) return damaged(tensors.error());
  for (const TensorMetadata& tensor : *tensors)
    file.tensors.push_back({tensor.info, bytes.subspan(tensor.begin, tensor.bytes)});
  return file;
}

TensorInfo share_of(const TensorInfo& tensor, Rank rank, Rank ranks) {
  TensorInfo share = tensor;
  if (share.global_shape.empty()) return share;
  const std::uint64_t rows = share.global_shape[0];
  share.slice.offset[0] = rows * rank / ranks;
  share.slice.shape[0] = rows * (rank + 1) / ranks - share.slice.offset[0];
  return share;
}

SaveOptions options_like(const CheckpointMetadata& metadata) {
  return {.training = metadata.training, .sharding = metadata.sharding, .custom = metadata.custom};
}

}  // namespace

Result<Converted> export_whole(Storage& from, const CheckpointMetadata& metadata, Storage& to,
                               const std::string& path, const Progress& progress) {
  auto plan = plan_safetensors(whole_tensors(metadata));
  if (!plan) return std::unexpected(plan.error());
  auto writer = to.create(path, plan->file_bytes);
  if (!writer) return std::unexpected(writer.error());
  Status written = (*writer)->append(bytes_of(plan->header));
  const LoadPlanner planner(metadata);
  Converted converted{.tensors = plan->tensors.size(), .bytes = 0, .id = metadata.id};
  for (const TensorMetadata& tensor : plan->tensors) {
    if (!written) break;
    const AlignedMemory memory = allocate_aligned(tensor.bytes);
    const std::span<std::byte> bytes(memory.get(), tensor.bytes);
    const TensorTarget target{tensor.info, bytes};
    if (auto read = read_planned(from, metadata, planner.plan({&target, 1}), {}); !read)
      return std::unexpected(read.error());
    written = (*writer)->append(bytes);
    converted.bytes += tensor.bytes;
    if (progress) progress(converted.bytes);
  }
  if (written) written = (*writer)->finish();
  if (!written) return std::unexpected(written.error());
  return converted;
}

Result<Converted> export_flat(Storage& from, const CheckpointMetadata& metadata, Storage& to,
                              const Progress& progress) {
  Converted converted{
      .tensors = whole_tensors(metadata).size(), .bytes = metadata.tensor_bytes(), .id = metadata.id};
  CheckpointMetadata flat = metadata;
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < metadata.shards.size(); ++i) {
    flat.shards[i].path = fmt::format("{}_shard_{}.bin", metadata.id.prefix, i);
    if (auto whole = verify_shard(from, metadata.shards[i], {}); !whole)
      return std::unexpected(whole.error());
    if (auto copied = copy_file(from, metadata.shards[i], to, flat.shards[i].path); !copied)
      return std::unexpected(copied.error());
    done += metadata.shards[i].bytes;
    if (progress) progress(done);
  }
  const std::string name = metadata.id.prefix + ".metadata.json";
  auto put = to.put_if_absent(name, bytes_of(MetadataSerializer::serialize(flat)));
  if (!put) return std::unexpected(put.error());
  if (!*put) return failure(Errc::conflict, name + " is there already, and is not written over");
  return converted;
}

Result<Converted> import_files(Storage& from, const std::vector<std::string>& paths, Storage& to,
                               const std::string& prefix, std::uint64_t step) {
  std::vector<AlignedMemory> kept;
  ShardData all;
  for (const std::string& path : paths) {
    auto file = read_file(from, path);
    if (!file) return std::unexpected(file.error());
    std::ranges::copy(file->tensors, std::back_inserter(all.tensors));
    kept.push_back(std::move(file->data));
  }
  Converted converted{.tensors = all.tensors.size()};
  for (const TensorSource& tensor : all.tensors) converted.bytes += tensor.data.size();
  InProcessGroup group(1);
  const auto alone = *group.join(0);
  auto saved = CheckpointCoordinator(*alone, to)
                   .coordinate_save(prefix, [&]() -> Result<ShardData> { return std::move(all); },
                                    {.training = {.step = step}});
  if (!saved) return std::unexpected(saved.error());
  converted.id = saved->id;
  return converted;
}

Result<Converted> reshard(Storage& storage, const CheckpointMetadata& metadata, Rank ranks) {
  if (ranks == 0) return failure(Errc::invalid_request, "a checkpoint is written by one rank at least");
  const std::vector<TensorInfo> tensors = whole_tensors(metadata);
  Converted converted{.tensors = tensors.size(), .bytes = metadata.tensor_bytes()};
  Status status;
  std::mutex mutex;
  const auto as_rank = [&](Collective& collective) {
    std::vector<AlignedMemory> memory;
    std::vector<TensorTarget> targets;
    for (const TensorInfo& tensor : tensors) {
      const TensorInfo share = share_of(tensor, collective.rank(), ranks);
      memory.push_back(allocate_aligned(slice_bytes(share)));
      targets.push_back({share, {memory.back().get(), slice_bytes(share)}});
    }
    auto loaded = CheckpointLoader(collective, storage).coordinate_load(to_text(metadata.id), targets, {});
    Result<SaveResult> saved = std::unexpected(loaded ? Error{} : loaded.error());
    if (loaded) {
      ShardData mine;
      for (const TensorTarget& target : targets) mine.tensors.push_back({target.info, target.data});
      if (collective.rank() == 0) mine.objects = metadata.objects;
      saved = CheckpointCoordinator(collective, storage)
                  .coordinate_save(
                      metadata.id.prefix, [&]() -> Result<ShardData> { return std::move(mine); },
                      options_like(metadata));
    }
    const std::lock_guard lock(mutex);
    if (!saved) status = std::unexpected(saved.error());
    if (saved) converted.id = saved->id;
  };
  InProcessGroup group(ranks);
  std::vector<std::unique_ptr<Collective>> places;
  places.reserve(ranks);
  for (Rank rank = 0; rank < ranks; ++rank) places.push_back(*group.join(rank));
  {
    std::vector<std::jthread> threads;
    threads.reserve(places.size());
    for (const auto& place : places) threads.emplace_back([&] { as_rank(*place); });
  }
  if (!status) return std::unexpected(status.error());
  return converted;
}

}  // namespace baton::checkpoint
