#include "base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"
#include "base/system_error.h"

namespace baton {

// A signal may interrupt an open on some file systems; nothing has happened then.
int open_again(const std::string& path, int flags, mode_t mode) {
  for (;;) {
    const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    if (descriptor >= 0 || errno != EINTR) return descriptor;
  }
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Status sync_directory(const std::string& path) {
  const Descriptor directory(open_again(path, O_RDONLY | O_DIRECTORY, 0));
  if (!directory.is_open()) return std::unexpected(system_error(errno, "open", path));
  if (::fsync(directory.number()) != 0) return std::unexpected(system_error(errno, "sync", path));
  return {};
}

std::string parent_of(const std::string& path) {
  const auto end = path.find_last_not_of('/');
  const auto slash = path.find_last_of('/', end);
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace baton
