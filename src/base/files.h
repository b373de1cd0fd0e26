// What the system's calls for files leave to whoever makes them.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace baton {

int open_again(const std::string& path, int flags, mode_t mode);  // as ::open, whatever signals come
bool write_all(int descriptor, std::string_view bytes);           // false: errno says why

// The name of a file or directory is durable only when what it stands in is.
Status sync_directory(const std::string& path);
std::string parent_of(const std::string& path);

}  // namespace baton
