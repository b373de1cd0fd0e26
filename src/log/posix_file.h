// Files of PosixDisk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/system_error.h"
#include "log/disk.h"

namespace baton::log {

// All of `bytes`, however many calls it takes.
Status write_all(int descriptor, const std::string& path, std::uint64_t offset, ByteView bytes);

// Takes over an open descriptor; and another one of the same file, opened with O_DIRECT, if it is not -1.
std::unique_ptr<File> posix_file(int descriptor, std::string path, int direct = -1);
// Reads in whole aligned blocks, as a descriptor opened with O_DIRECT demands. Cannot write.
std::unique_ptr<File> direct_file(int descriptor, std::string path);

}  // namespace baton::log
