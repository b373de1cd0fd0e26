// What differs between two checkpoints, whatever ranks wrote them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/metadata.h"
#include "checkpoint/shard_file.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

// Whether an object of a checkpoint is a plain value, and not how the Python package puts a state together.
bool is_plain_value(std::string_view name);

// Of tensors and of plain values, which the Python package keeps beside them; by their names.
struct Difference {
  std::vector<std::string> only_in_first;
  std::vector<std::string> only_in_second;
  std::vector<std::string> of_another_form;  // dtype or shape; in words
  std::vector<std::string> changed;
  std::uint64_t same = 0;
  std::uint64_t bytes_read = 0;  // tensors that were cut alike are told apart by their fingerprints

  bool is_empty() const {
    return only_in_first.empty() && only_in_second.empty() && of_another_form.empty() && changed.empty();
  }
};
// Progress is told in bytes of the first one's tensors.
Result<Difference> compare(Storage& storage, const CheckpointMetadata& first,
                           const CheckpointMetadata& second, const Progress& progress);

}  // namespace baton::checkpoint
