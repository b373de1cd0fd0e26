// What ranks tell each other during a save: which slices each has, and what each wrote. What is too large to
// be brought to an operation is put beside the shards, where the others find it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "checkpoint/collective.h"
#include "checkpoint/metadata.h"
#include "checkpoint/storage.h"
#include "checkpoint/tensor.h"

namespace baton::checkpoint {

// How much each of so many ranks may bring to what so many hear: half of what an operation carries is left to
// all else.
inline constexpr std::size_t kBroughtMax = 1 << 20;
std::size_t brought_max(std::size_t bringers, std::size_t hearers);

// What a rank brings to the first step. Rank 0 names the attempt, and what it may reuse.
struct Announcement {
  std::string attempt;
  CheckpointId base;
  std::vector<TensorInfo> slices;
  bool are_aside = false;  // too many: they follow once the attempt has a name
};
Bytes encode(const Announcement& announcement, Rank world_size);
Result<Announcement> decode_announcement(ByteView bytes);

std::string slices_path(const CheckpointId& id, Rank rank);
Status put_slices(Storage& storage, const std::string& path, const std::vector<TensorInfo>& slices);
Result<std::vector<TensorInfo>> get_slices(Storage& storage, const std::string& path);

// The report itself, or the path under which it was put.
Result<std::string> to_bring(const Collective& collective, Storage& storage, const RankReport& report,
                             const CheckpointId& id);
Result<RankReport> brought_report(Storage& storage, std::string_view brought);

}  // namespace baton::checkpoint
