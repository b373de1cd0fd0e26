// Whether a checkpoint can be what it says it is: first the manifest alone, then the files behind it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/metadata.h"
#include "checkpoint/shard_file.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

struct ValidationResult {
  std::vector<std::string> errors;
  std::vector<std::string> warnings;
  bool is_valid() const { return errors.empty(); }
};

class CheckpointValidator {
 public:
  // Every tensor is there as a whole, once, of one dtype and shape; paths stay within the store.
  static ValidationResult validate(const CheckpointMetadata& metadata);
  // The same as an error that names what is wrong first.
  static Status validate_or_fail(const CheckpointMetadata& metadata);
  // Every byte of every file; one error for each file that is damaged.
  static ValidationResult verify(Storage& storage, const CheckpointMetadata& metadata,
                                 const ReadOptions& options);
};

}  // namespace baton::checkpoint
