#include "checkpoint/shard_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/running_crc.h"
#include "checkpoint/checksum.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/slice_digests.h"
#include "checkpoint/stream_copy.h"
#include "checkpoint/with_memory.h"
#include "wire/sha256.h"

namespace baton::checkpoint {
namespace {

// What is hashed, summed and copied while it is in the processor's cache.
constexpr std::size_t kStripBytes = 128 << 10;
constexpr std::uint64_t kReadersMax = 2;
constexpr std::uint64_t kShareBytesMin = 16 << 20;  // for less, a thread is not worth its start

std::unexpected<Error> stopped() { return failure(Errc::closed, "it was stopped"); }

std::uint64_t block_end(const ShardMetadata& shard, std::uint64_t block) {
  return std::min((block + 1) * kBlockBytes, shard.bytes);
}

Result<std::unique_ptr<ShardReader>> open_whole(Storage& storage, const ShardMetadata& shard) {
  auto reader = storage.open(shard.path);
  if (!reader && reader.error().code == Errc::not_found)
    return failure(Errc::corrupt, fmt::format("{} is missing in {}", shard.path, storage.place()));
  if (!reader) return reader;
  if ((*reader)->size() != shard.bytes)
    return failure(Errc::corrupt, fmt::format("{} has {} bytes, and was written with {}", shard.path,
                                              (*reader)->size(), shard.bytes));
  return reader;
}

// A block may hold many tensors; which of them changed, their fingerprints say.
std::string damaged_tensors(ShardReader& reader, const ShardMetadata& shard, const ByteRange& damaged) {
  std::string names;
  for (const TensorMetadata& tensor : shard.tensors) {
    const bool touches =
        tensor.begin < damaged.begin + damaged.bytes && damaged.begin < tensor.begin + tensor.bytes;
    if (!touches) continue;
    Fingerprinter now;
    const auto read =
        reader.read({{tensor.begin, tensor.bytes}}, [&](std::uint64_t, ByteView piece) -> Status {
          now.add(piece);
          return {};
        });
    if (!read || now.finish() != tensor.fingerprint)
      names += fmt::format("{}tensor \"{}\" {}", names.empty() ? "" : ", ", tensor.info.name,
                           to_text(tensor.info.slice));
  }
  if (!names.empty()) return names;
  return damaged.begin == 0 ? "its header, or what no tensor of this checkpoint needs"
                            : "what no tensor of this checkpoint needs";
}

std::unexpected<Error> damage(ShardReader& reader, const ShardMetadata& shard, const ByteRange& where) {
  return failure(Errc::corrupt,
                 fmt::format("{} is damaged in bytes {} to {}: {}", shard.path, where.begin,
                             where.begin + where.bytes - 1, damaged_tensors(reader, shard, where)));
}

using EachStrip = std::function<void(std::uint64_t offset, ByteView strip)>;

// Blocks of the file, strip by strip, each block against its checksum. Returns how many bytes they were.
Result<std::uint64_t> read_blocks(Storage& storage, const ShardMetadata& shard,
                                  const std::vector<ByteRange>& blocks, const ReadOptions& options,
                                  const EachStrip& each) {
  auto reader = open_whole(storage, shard);
  if (!reader) return std::unexpected(reader.error());
  std::uint64_t done = 0;
  ByteRange damaged;
  const auto read = (*reader)->read(blocks, [&](std::uint64_t offset, ByteView block) -> Status {
    if (options.stop.stop_requested()) return stopped();
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < block.size(); at += kStripBytes) {
      const ByteView strip = block.subspan(at, std::min(kStripBytes, block.size() - at));
      if (options.verify != Verify::off) sum = running_crc32c(sum, strip);
      each(offset + at, strip);
    }
    if (options.verify != Verify::off && sum != shard.block_sums[offset / kBlockBytes]) {
      damaged = {offset, block.size()};
      return failure(Errc::corrupt, "damaged");
    }
    done += block.size();
    if (options.progress) options.progress(done);
    return {};
  });
  if (damaged.bytes > 0) return damage(**reader, shard, damaged);
  if (!read) return std::unexpected(read.error());
  return done;
}

// The same in a few shares of about equal size, for each of which there is a thread.
std::vector<std::vector<ByteRange>> shares_of(const std::vector<ByteRange>& blocks) {
  std::uint64_t all = 0;
  for (const ByteRange& range : blocks) all += range.bytes;
  const std::uint64_t threads =
      std::min<std::uint64_t>(kReadersMax, std::max(1U, std::thread::hardware_concurrency()));
  if (threads == 1 || all < kShareBytesMin * threads) return {blocks};
  const std::uint64_t each = (all / threads / kBlockBytes + 1) * kBlockBytes;
  std::vector<std::vector<ByteRange>> shares(1);
  std::uint64_t room = each;
  for (ByteRange range : blocks) {
    while (range.bytes > 0) {
      if (room == 0) shares.emplace_back(), room = each;
      const std::uint64_t part = std::min(range.bytes, room);
      shares.back().push_back({range.begin, part});
      range = {range.begin + part, range.bytes - part};
      room -= std::min(room, (part + kBlockBytes - 1) / kBlockBytes * kBlockBytes);
    }
  }
  return shares;
}

// One core cannot check and copy as fast as a good disk reads.
Result<std::uint64_t> read_shared_out(Storage& storage, const ShardMetadata& shard,
                                      const std::vector<ByteRange>& blocks, const ReadOptions& options,
                                      const std::function<EachStrip()>& each) {
  const auto shares = shares_of(blocks);
  std::mutex mutex;
  std::uint64_t all_done = 0;
  std::vector<Result<std::uint64_t>> results(shares.size(), std::uint64_t{0});
  const auto read_share = [&](std::size_t share) {
    ReadOptions own = options;
    std::uint64_t told = 0;
    if (options.progress) {
      own.progress = [&](std::uint64_t bytes) {
        const std::lock_guard lock(mutex);
        all_done += bytes - std::exchange(told, bytes);
        options.progress(all_done);
      };
    }
    return read_blocks(storage, shard, shares[share], own, each());
  };
  // What a thread throws would end the process.
  const auto read = [&](std::size_t share) {
    results[share] = with_memory("read", [&] { return read_share(share); });
  };
  {
    std::vector<std::jthread> helpers;
    std::size_t share = 1;
    try {
      for (; share < shares.size(); ++share) helpers.emplace_back(read, share);
    } catch (const std::system_error&) {
      for (; share < shares.size(); ++share) read(share);  // There are no more threads to be had.
    }
    read(0);
  }
  std::uint64_t sum = 0;
  for (const auto& result : results) {
    if (!result) return result;
    sum += *result;
  }
  return sum;
}

// The blocks that the copies touch, neighbours together.
std::vector<ByteRange> needed_blocks(const ShardMetadata& shard, const std::vector<Copy>& copies) {
  std::vector<ByteRange> ranges;
  for (const Copy& copy : copies) {
    if (copy.bytes == 0) continue;
    const std::uint64_t begin = copy.begin / kBlockBytes * kBlockBytes;
    const std::uint64_t end = block_end(shard, (copy.begin + copy.bytes - 1) / kBlockBytes);
    if (ranges.empty() || begin > ranges.back().begin + ranges.back().bytes) {
      ranges.push_back({begin, end - begin});
    } else {
      ranges.back().bytes = std::max(ranges.back().bytes, end - ranges.back().begin);
    }
  }
  return ranges;
}

// Copies are met in order: `first` is the first one that may reach into this piece.
void scatter(std::uint64_t offset, ByteView piece, const std::vector<Copy>& copies, std::size_t& first) {
  const std::uint64_t end = offset + piece.size();
  while (first < copies.size() && copies[first].begin + copies[first].bytes <= offset) ++first;
  for (std::size_t i = first; i < copies.size() && copies[i].begin < end; ++i) {
    const Copy& copy = copies[i];
    const std::uint64_t from = std::max(copy.begin, offset);
    const std::uint64_t to = std::min(copy.begin + copy.bytes, end);
    if (from < to) stream_copy(copy.to + (from - copy.begin), piece.data() + (from - offset), to - from);
  }
}

// The blocks that the copies need. A SHA-256 is computed from the first byte of a slice to its last, so where
// there is one, one thread reads.
Result<std::uint64_t> read_checked(Storage& storage, const ShardMetadata& shard,
                                   const std::vector<Copy>& copies, const ReadOptions& options,
                                   const std::function<EachStrip()>& each) {
  SliceDigests digests(shard, copies);
  if (options.verify != Verify::touched || digests.is_empty())
    return read_shared_out(storage, shard, needed_blocks(shard, copies), options, each);
  auto read = read_blocks(storage, shard, needed_blocks(shard, digests.with_whole_slices(copies)), options,
                          [&, take = each()](std::uint64_t offset, ByteView strip) {
                            take(offset, strip);
                            digests.add(offset, strip);
                          });
  if (!read) return read;
  if (auto same = digests.finish(); !same) return std::unexpected(same.error());
  return read;
}

EachStrip just_look() {
  return [](std::uint64_t, ByteView) {};
}

}  // namespace

Result<ShardMetadata> write_shard(Storage& storage, const std::string& path,
                                  const std::vector<TensorSource>& slices, const WriteOptions& options) {
  std::vector<TensorInfo> infos;
  infos.reserve(slices.size());
  for (const TensorSource& slice : slices) infos.push_back(slice.info);
  return write_shard(
      storage, path, infos, [&](std::size_t slice, const Give& give) { return give(slices[slice].data); },
      options);
}

Result<ShardMetadata> write_shard(Storage& storage, const std::string& path,
                                  const std::vector<TensorInfo>& slices, const Content& content,
                                  const WriteOptions& options) {
  auto plan = plan_safetensors(slices);
  if (!plan) return std::unexpected(plan.error());
  auto writer = storage.create(path, plan->file_bytes);
  if (!writer) return std::unexpected(writer.error());

  BlockSums sums;
  Fingerprinter fingerprinter;
  wire::Sha256 sha256;
  std::uint64_t done = 0;
  const auto append = [&](ByteView strip) -> Status {
    sums.add(strip);
    return (*writer)->append(strip);
  };
  const auto give = [&](ByteView rest) -> Status {
    while (!rest.empty()) {
      if (options.stop.stop_requested()) return stopped();
      const ByteView strip = rest.first(std::min(rest.size(), kStripBytes));
      fingerprinter.add(strip);
      if (options.sha256) sha256.add(text_of(strip));
      if (auto written = append(strip); !written) return written;
      rest = rest.subspan(strip.size());
      done += strip.size();
      if (options.progress) options.progress(done);
    }
    return {};
  };
  if (auto written = append(bytes_of(plan->header)); !written) return std::unexpected(written.error());
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < plan->tensors.size(); ++i) {
    TensorMetadata& tensor = plan->tensors[i];
    fingerprinter.restart();
    if (auto given = content(plan->source[i], give); !given) return std::unexpected(given.error());
    expected += tensor.bytes;
    BATON_CHECK(done == expected);
    tensor.fingerprint = fingerprinter.finish();
    if (options.sha256) tensor.sha256 = sha256.hex();
  }
  if (auto finished = (*writer)->finish(); !finished) return std::unexpected(finished.error());
  return ShardMetadata{.path = path,
                       .bytes = plan->file_bytes,
                       .tensors = std::move(plan->tensors),
                       .block_sums = sums.finish()};
}

Result<std::uint64_t> read_shard(Storage& storage, const ShardMetadata& shard,
                                 const std::vector<Copy>& copies, const ReadOptions& options) {
  return read_checked(storage, shard, copies, options, [&]() -> EachStrip {
    return [&copies, first = std::size_t{0}](std::uint64_t offset, ByteView strip) mutable {
      scatter(offset, strip, copies, first);
    };
  });
}

Status verify_tensors(Storage& storage, const ShardMetadata& shard) {
  std::vector<Copy> tensors;
  for (const TensorMetadata& tensor : shard.tensors) tensors.push_back({tensor.begin, tensor.bytes, nullptr});
  auto read = read_checked(storage, shard, tensors, {}, just_look);
  if (!read) return std::unexpected(read.error());
  return {};
}

Status verify_shard(Storage& storage, const ShardMetadata& shard, const ReadOptions& options) {
  auto read = read_checked(storage, shard, {{0, shard.bytes, nullptr}}, options, just_look);
  if (!read) return std::unexpected(read.error());
  return {};
}

}  // namespace baton::checkpoint
