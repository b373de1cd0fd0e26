#include "base/system_error.h"

#include <cerrno>
#include <cstring>

namespace baton {

Error system_error(int number, std::string_view doing, const std::string& path) {
  Errc code = Errc::io_failed;
  std::string_view advice = "check the disk and the kernel's messages";
  switch (number) {
    case ENOENT:
      code = Errc::not_found, advice = "check the path, and that the directory above it exists";
      break;
    case ENOTDIR: code = Errc::invalid_request, advice = "choose the path of a directory"; break;
    case ENOSPC:
    case EDQUOT: code = Errc::no_space, advice = "free some space on this disk or raise the quota"; break;
    case EACCES:
    case EPERM:
    case EROFS:
      code = Errc::permission_denied;
      advice = "run as the owner of the data directory, on a file system that can be written";
      break;
    case EMFILE:
    case ENFILE: code = Errc::exhausted, advice = "raise the limit of open files"; break;
    default: break;
  }
  return {code, "cannot " + std::string(doing) + " " + path + ": " + std::strerror(number) + "; " +
                    std::string(advice)};
}

}  // namespace baton
