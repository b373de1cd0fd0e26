// Shard files are plain safetensors, which many programs read:
//
//   8 bytes   length of the header, little-endian
//   header    JSON: name -> {dtype, shape, data_offsets from the end of the header}; "__metadata__": texts
//   data      the tensors, contiguous, to the end of the file
//
// Ours pads the header with spaces so that data begins at a multiple of 4 KiB, and says in __metadata__ which
// part of the whole tensor a slice is ("baton.slices": JSON, entry -> {name, shape, offset}).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "checkpoint/metadata.h"
#include "checkpoint/tensor.h"

namespace baton::checkpoint {

inline constexpr std::uint64_t kSafetensorsHeaderBytesMax = 100'000'000;  // as in the format's own library
inline constexpr std::uint64_t kSafetensorsAlignment = 4096;

// How a file with these slices begins, and where each of them lies in it: `entry`, `begin` and `bytes` are
// set. The largest elements come first, so that every tensor is aligned to its own.
struct SafetensorsPlan {
  std::string header;                   // with its length before it
  std::vector<TensorMetadata> tensors;  // in the order of the file
  std::vector<std::size_t> source;      // which of the given ones each of them is
  std::uint64_t file_bytes = 0;
};
Result<SafetensorsPlan> plan_safetensors(const std::vector<TensorInfo>& slices);

// The length of the header, from the first eight bytes of a file of this size. CORRUPT if it cannot be.
Result<std::uint64_t> safetensors_header_bytes(ByteView first_eight, std::uint64_t file_bytes);
// What the header says is in the file, in the order of the file; of files by others too. No fingerprints.
Result<std::vector<TensorMetadata>> parse_safetensors(std::string_view header, std::uint64_t file_bytes);

}  // namespace baton::checkpoint
