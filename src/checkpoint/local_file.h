// Large files of a local or shared file system: written and read in blocks, several at a time.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/block_memory.h"
#include "checkpoint/io_engine.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

// The files share the memory with others, and may outlive the storage.
Result<std::unique_ptr<ShardWriter>> create_local_file(const std::string& path, std::uint64_t bytes,
                                                       IoMode mode, std::shared_ptr<BlockMemory> memory);
Result<std::unique_ptr<ShardReader>> open_local_file(const std::string& path, IoMode mode,
                                                     std::shared_ptr<BlockMemory> memory);

}  // namespace baton::checkpoint
