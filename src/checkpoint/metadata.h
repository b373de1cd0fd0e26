// What a checkpoint says of itself: the manifest, a JSON file that is written once and decides whether an
// attempt to save is a checkpoint (commit) or nothing (abort). docs/checkpoints.md specifies the fields.
//
//   CheckpointMetadata ── ShardMetadata (a file) ── TensorMetadata (a slice in it)
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/checksum.h"
#include "checkpoint/collective.h"
#include "checkpoint/tensor.h"

namespace baton::checkpoint {

inline constexpr std::uint32_t kFormatMajor = 1;
inline constexpr std::uint32_t kFormatMinor = 0;

struct TensorMetadata {
  TensorInfo info;
  std::string entry;        // its name in the file; the tensor's, unless the file has several slices of it
  std::uint64_t begin = 0;  // byte of the file
  std::uint64_t bytes = 0;
  Fingerprint fingerprint;
  std::string sha256;  // in hex; empty unless the save was asked for it
  friend bool operator==(const TensorMetadata&, const TensorMetadata&) = default;
};

struct ShardMetadata {
  Rank rank = 0;     // that wrote it
  std::string path;  // from the root of the store; of another attempt, if its slices have not changed since
  std::uint64_t bytes = 0;
  std::vector<TensorMetadata> tensors;  // those that belong to this checkpoint, in the order of `begin`
  std::vector<std::uint32_t> block_sums;
  bool has_sha256() const;  // of any of them
  friend bool operator==(const ShardMetadata&, const ShardMetadata&) = default;
};

// What the strategy is called is for people; the slices say where everything is.
struct ShardingMetadata {
  std::string strategy;  // fsdp, ddp, tensor_parallel, …
  std::string precision;
  std::map<std::string, std::string> details;
  friend bool operator==(const ShardingMetadata&, const ShardingMetadata&) = default;
};

struct TrainingMetadata {
  std::uint64_t step = 0;
  std::uint64_t epoch = 0;
  double learning_rate = 0;
  std::string optimizer;
  friend bool operator==(const TrainingMetadata&, const TrainingMetadata&) = default;
};

struct CheckpointId {
  std::string prefix;   // step-0000001000
  std::string attempt;  // a0001-3f9c…: numbered, and with chance, so that no two writers share a directory
  friend bool operator==(const CheckpointId&, const CheckpointId&) = default;
};
// The name of an attempt is the order of attempts within a prefix: the largest is the newest. The number may
// have more digits than four, and all else has the same length.
std::strong_ordering operator<=>(const CheckpointId& one, const CheckpointId& other);
std::string directory_of(const CheckpointId& id);
std::string manifest_path(const CheckpointId& id);
std::string shard_path(const CheckpointId& id, Rank rank);
std::string held_path(const CheckpointId& id);  // of an attempt: which files of others it may name
std::string to_text(const CheckpointId& id);

inline constexpr std::size_t kObjectDepthMax =
    320;  // arrays and objects of JSON in each other, in one of them

struct CheckpointMetadata {
  std::uint32_t major = kFormatMajor;
  std::uint32_t minor = kFormatMinor;
  CheckpointId id;
  std::uint64_t generation = 0;  // of the ranks that wrote it
  std::int64_t created_ms = 0;   // since 1970; told, never compared
  Rank world_size = 0;
  ShardingMetadata sharding;
  TrainingMetadata training;
  std::map<std::string, std::string> custom;
  std::map<std::string, std::string> objects;  // state that is no tensor; each one a JSON text
  std::vector<ShardMetadata> shards;
  friend bool operator==(const CheckpointMetadata&, const CheckpointMetadata&) = default;

  std::uint64_t tensor_bytes() const;
};
std::int64_t wall_clock_ms();  // for `created_ms`

// What one rank tells the committer.
struct RankReport {
  std::vector<ShardMetadata> shards;
  std::map<std::string, std::string> objects;
  friend bool operator==(const RankReport&, const RankReport&) = default;
};

// A decision, as it is read back.
enum class Verdict : bool { commit, abort };

class MetadataSerializer {
 public:
  static std::string serialize(const CheckpointMetadata& metadata);
  // Different each time, so that of those who give an attempt up with the same words one is the first.
  static std::string serialize_abort(const CheckpointId& id, std::string_view why);
  static Result<Verdict> verdict(std::string_view text);
  // CORRUPT: not what was written. UNSUPPORTED_VERSION: by a newer baton. `where` is named in the error.
  static Result<CheckpointMetadata> parse(std::string_view text, const std::string& where);

  // Whether it can be an object of a checkpoint: JSON, of no more than kObjectDepthMax.
  static Status check_object(std::string_view text);

  static std::string serialize(const RankReport& report);
  static Result<RankReport> parse_report(std::string_view text);
};

}  // namespace baton::checkpoint
