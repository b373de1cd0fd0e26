// Storage by the name that people give it: a directory, or s3://BUCKET/PREFIX. Either way what may be passing
// is tried again: calls of a file system by a RetryingStorage, requests to a service by its client.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/storage.h"

namespace baton::checkpoint {

enum class Opening : bool { existing, made };  // made: the directory, if it is not there

Result<std::unique_ptr<Storage>> open_storage(const std::string& place, Opening opening);

}  // namespace baton::checkpoint
