// Files of PosixDisk, and how errno becomes an Error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "log/disk.h"

namespace baton::log {

// "cannot write /data/wal/…: No space left on device; …", with the code that the caller acts on.
Error system_error(int number, std::string_view doing, const std::string& path);

// Takes over an open descriptor.
std::unique_ptr<File> posix_file(int descriptor, std::string path);
// Reads in whole aligned blocks, as a descriptor opened with O_DIRECT demands. Cannot write.
std::unique_ptr<File> direct_file(int descriptor, std::string path);

}  // namespace baton::log
