// Large files at an S3-compatible service: written as uploads in parts, read as ranges, several at a time.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "checkpoint/s3_client.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

// Nobody sees it before it is finished. `bytes` is how long it will be.
std::unique_ptr<ShardWriter> write_s3_file(std::shared_ptr<S3Client> client, const std::string& path,
                                           std::uint64_t bytes);
std::unique_ptr<ShardReader> read_s3_file(std::shared_ptr<S3Client> client, const std::string& path,
                                          std::uint64_t bytes);

// As headers and elements have them; 0 for what is none.
std::uint64_t s3_number(std::string_view text);

}  // namespace baton::checkpoint
