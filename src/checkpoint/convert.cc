#include "checkpoint/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "checkpoint/catalog.h"
#include "checkpoint/checksum.h"
#include "checkpoint/lone_save.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_pieces.h"

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

Status copy_file(Storage& from, const ShardMetadata& shard, Storage& to, const std::string& path,
                 const Progress& progress) {
  auto reader = from.open(shard.path);
  if (!reader) return std::unexpected(reader.error());
  auto writer = to.create(path, (*reader)->size());
  if (!writer) return std::unexpected(writer.error());
  BlockSums sums;
  const auto copied =
      (*reader)->read({{0, (*reader)->size()}}, [&](std::uint64_t offset, ByteView piece) -> Status {
        progress(offset + piece.size());
        sums.add(piece);
        return (*writer)->append(piece);
      });
  if (!copied) return copied;
  // That it was whole a moment ago says nothing of what was read now.
  if (sums.finish() != shard.block_sums)
    return failure(Errc::corrupt, path_in(from, shard.path) + " was changed while it was copied");
  return (*writer)->finish();
}

// A safetensors file of somebody's, and what it says is in it.
struct Imported {
  std::string path;
  std::uint64_t bytes = 0;
  std::string version;
  std::vector<TensorMetadata> tensors;
};

// Files of which one is open at a time, since each takes memory for its blocks. One that was opened anew may
// be another one by then, also within a read (RetryingStorage).
class OneAtATime {
 public:
  explicit OneAtATime(Storage& storage) : storage_(storage) {}

  Status read(const Imported& file, const ByteRange& range, const Give& give) {
    const auto reader = open(file);
    if (!reader) return std::unexpected(reader.error());
    Status read = (*reader)->read({range}, [&](std::uint64_t, ByteView piece) { return give(piece); });
    if (read && (*reader)->version() != file.version) return changed(file);
    return read;
  }

 private:
  Result<ShardReader*> open(const Imported& file) {
    if (reader_ && path_ == file.path) return reader_.get();
    reader_.reset();
    auto opened = storage_.open(file.path);
    if (!opened) return std::unexpected(opened.error());
    if ((*opened)->size() != file.bytes) return changed(file);
    path_ = file.path;
    reader_ = *std::move(opened);
    return reader_.get();
  }
  std::unexpected<Error> changed(const Imported& file) const {
    return failure(Errc::corrupt, path_in(storage_, file.path) + " was changed while it was imported");
  }

  Storage& storage_;
  std::string path_;
  std::unique_ptr<ShardReader> reader_;
};

Result<Bytes> read_range(ShardReader& reader, const ByteRange& range) {
  Bytes bytes;
  bytes.reserve(range.bytes);
  auto read = reader.read({range}, [&](std::uint64_t, ByteView piece) -> Status {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    return {};
  });
  if (!read) return std::unexpected(read.error());
  return bytes;
}

Result<Imported> header_of(Storage& from, const std::string& path) {
  const auto damaged = [&](const Error& error) {
    return failure(error.code, fmt::format("{}: {}", path_in(from, path), error.message));
  };
  auto reader = from.open(path);
  if (!reader) return std::unexpected(reader.error());
  const std::uint64_t size = (*reader)->size();
  const std::string version = (*reader)->version();
  const auto beginning = read_range(**reader, {0, std::min<std::uint64_t>(size, 8)});
  if (!beginning) return std::unexpected(beginning.error());
  const auto length = safetensors_header_bytes(*beginning, size);
  if (!length) return damaged(length.error());
  const auto header = read_range(**reader, {8, *length});
  if (!header) return std::unexpected(header.error());
  auto tensors = parse_safetensors(text_of(*header), size);
  if (!tensors) return damaged(tensors.error());
  return Imported{path, size, version, *std::move(tensors)};
}

TensorInfo share_of(const TensorInfo& tensor, Rank rank, Rank ranks) {
  TensorInfo share = tensor;
  if (share.global_shape.empty()) return share;
  const std::uint64_t rows = share.global_shape[0];
  share.slice.offset[0] = rows * rank / ranks;
  share.slice.shape[0] = rows * (rank + 1) / ranks - share.slice.offset[0];
  return share;
}

}  // namespace

Result<Converted> export_whole(Storage& from, const CheckpointMetadata& metadata, Storage& to,
                               const std::string& path, const Progress& progress) {
  auto plan = plan_safetensors(whole_tensors(metadata));
  if (!plan) return std::unexpected(plan.error());
  auto writer = to.create(path, plan->file_bytes);
  if (!writer) return std::unexpected(writer.error());
  Status written = (*writer)->append(bytes_of(plan->header));
  TensorPieces pieces(from, metadata);
  Converted converted{.tensors = plan->tensors.size(), .bytes = 0, .id = metadata.id};
  for (const TensorMetadata& tensor : plan->tensors) {
    for (const Elements& piece : pieces_of(tensor.info)) {
      if (!written) break;
      const auto bytes = pieces.read(tensor.info, piece);
      if (!bytes) return std::unexpected(bytes.error());
      written = (*writer)->append(*bytes);
      converted.bytes += bytes->size();
      if (progress) progress(converted.bytes);
    }
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
  const auto tell = [&](std::uint64_t bytes) {
    if (progress) progress(done + bytes);
  };
  for (std::size_t i = 0; i < metadata.shards.size(); ++i) {
    const ShardMetadata& shard = metadata.shards[i];
    flat.shards[i].path = fmt::format("{}_shard_{}.bin", metadata.id.prefix, i);
    if (auto whole = verify_shard(from, shard, {.progress = tell}); !whole)
      return std::unexpected(whole.error());
    done += shard.bytes;
    if (auto copied = copy_file(from, shard, to, flat.shards[i].path, tell); !copied)
      return std::unexpected(copied.error());
    done += shard.bytes;
  }
  const std::string name = metadata.id.prefix + ".metadata.json";
  auto put = to.put_if_absent(name, bytes_of(MetadataSerializer::serialize(flat)));
  if (!put) return std::unexpected(put.error());
  if (!*put) return failure(Errc::conflict, name + " is there already, and is not written over");
  return converted;
}

Result<Converted> import_files(Storage& from, const std::vector<std::string>& paths, Storage& to,
                               const std::string& prefix, std::uint64_t step, const WriteOptions& options) {
  if (auto fits = check_new_prefix(prefix); !fits) return std::unexpected(fits.error());
  std::vector<Imported> files;
  std::vector<TensorInfo> slices;
  struct Place {
    std::size_t file;
    ByteRange range;
  };
  std::vector<Place> places;
  Converted converted;
  for (const std::string& path : paths) {
    auto file = header_of(from, path);
    if (!file) return std::unexpected(file.error());
    for (const TensorMetadata& tensor : file->tensors) {
      slices.push_back(tensor.info);
      places.push_back({files.size(), {tensor.begin, tensor.bytes}});
      converted.bytes += tensor.bytes;
    }
    files.push_back(*std::move(file));
  }
  converted.tensors = slices.size();
  const CheckpointMetadata metadata{
      .id = {prefix, {}}, .created_ms = wall_clock_ms(), .training = {.step = step}};
  OneAtATime open(from);
  const auto saved = save_alone(
      to, metadata, {slices},
      [&](Rank, std::size_t slice, const Give& give) -> Status {
        const Place& place = places[slice];
        return open.read(files[place.file], place.range, give);
      },
      options);
  if (!saved) return std::unexpected(saved.error());
  converted.id = *saved;
  return converted;
}

Result<Converted> reshard(Storage& storage, const CheckpointMetadata& metadata, Rank ranks,
                          const Progress& progress) {
  if (ranks == 0) return failure(Errc::invalid_request, "a checkpoint is written by one rank at least");
  const std::vector<TensorInfo> tensors = whole_tensors(metadata);
  std::vector<std::vector<TensorInfo>> by_rank(ranks);
  for (Rank rank = 0; rank < ranks; ++rank)
    for (const TensorInfo& tensor : tensors) by_rank[rank].push_back(share_of(tensor, rank, ranks));
  TensorPieces pieces(storage, metadata);
  CheckpointMetadata again = metadata;
  again.created_ms = wall_clock_ms();
  const auto saved = save_alone(
      storage, std::move(again), by_rank,
      [&](Rank rank, std::size_t slice, const Give& give) -> Status {
        const TensorInfo& rows = by_rank[rank][slice];
        for (const Elements& piece : pieces_of(rows)) {
          const auto bytes = pieces.read(rows, piece);
          if (!bytes) return std::unexpected(bytes.error());
          if (auto given = give(*bytes); !given) return given;
        }
        return {};
      },
      {.sha256 = std::ranges::any_of(metadata.shards, &ShardMetadata::has_sha256), .progress = progress});
  if (!saved) return std::unexpected(saved.error());
  return Converted{.tensors = tensors.size(), .bytes = metadata.tensor_bytes(), .id = *saved};
}

}  // namespace baton::checkpoint
