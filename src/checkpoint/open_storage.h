// Storage by the name that people give it: a directory, or s3://BUCKET/PREFIX.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/storage.h"

namespace baton::checkpoint {

enum class Opening : bool { existing, made };  // made: the directory, if it is not there

Result<std::unique_ptr<Storage>> open_storage(const std::string& place, Opening opening);

}  // namespace baton::checkpoint
