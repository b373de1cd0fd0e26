#include "server/blob_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace baton::server {
namespace {

constexpr std::uint64_t kLeftForTheLog = std::uint64_t{256} << 20;  // at least
constexpr std::uint64_t kUnwrittenMax = std::uint64_t{8} << 20;

std::unexpected<Error> cannot(const char* what, const std::string& path) {
  const int error = errno;
  const Errc code = error == ENOSPC || error == EDQUOT ? Errc::no_space
                    : error == ENOENT                  ? Errc::not_found
                                                       : Errc::io_failed;
  return failure(code, fmt::format("cannot {} {}: {}", what, path, std::strerror(error)));
}

// For nobody else to read, like the log: what a task may be seen by is for the server to say.
bool make_folder(const std::string& path) { return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST; }

}  // namespace

NewBlobFile::~NewBlobFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Status NewBlobFile::open() {
  static std::atomic<std::uint64_t> number = 0;
  const std::string above = parent_of(folder_);
  if (!make_folder(above) || !make_folder(folder_)) return cannot("make", folder_);
  struct statvfs room{};
  if (::statvfs(folder_.c_str(), &room) != 0) return cannot("look at", folder_);
  const std::uint64_t left = std::max(kLeftForTheLog, set_aside_bytes_);
  if (std::uint64_t{room.f_bavail} * room.f_frsize < bytes_ + left)
    return failure(Errc::no_space, fmt::format("the disk has no room for {} bytes: free some space", bytes_));
  const std::string path = fmt::format("{}/{}.{}.tmp", folder_, hash_, ++number);
  file_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file_.is_open()) return cannot("write", path);
  path_ = path;
  // Set aside at once, where the file system can: uploads at the same time would otherwise count on the same
  // room.
  if (::fallocate(file_.number(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes_)) != 0 && errno == ENOSPC)
    return cannot("write", path);
  if (auto synced = sync_directory(parent_of(above)); !synced) return synced;
  return sync_directory(above);
}

Status NewBlobFile::append(std::string_view bytes) {
  sum_.add(bytes);
  written_ += bytes.size();
  if (!write_all(file_.number(), bytes)) return cannot("write", path_);
  // The disk gets it as it comes. Otherwise whoever syncs next, and that is the log, would wait for all of
  // it.
  if (written_ - on_disk_ >= kUnwrittenMax) {
    ::sync_file_range(file_.number(), static_cast<off64_t>(on_disk_),
                      static_cast<off64_t>(written_ - on_disk_),
                      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    on_disk_ = written_;
  }
  return {};
}

Status NewBlobFile::finish() {
  if (written_ != bytes_ || sum_.hex() != hash_)
    return failure(Errc::invalid_request, "these bytes are not those that the name is the SHA-256 of");
  const std::string path = folder_ + "/" + hash_;
  if (::fsync(file_.number()) != 0) return cannot("sync", path_);
  if (::rename(path_.c_str(), path.c_str()) != 0) return cannot("write", path);
  path_.clear();
  return sync_directory(folder_);
}

Result<std::uint64_t> BlobFile::open() {
  file_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_.is_open() && errno == ENOENT) return failure(Errc::not_found, "there is no such blob");
  struct stat about{};
  if (!file_.is_open() || ::fstat(file_.number(), &about) != 0) return cannot("read", path_);
  return static_cast<std::uint64_t>(about.st_size);
}

Status BlobFile::read(std::string& into, std::size_t bytes) {
  into.resize(bytes);
  for (std::size_t got = 0; got < bytes;) {
    const ssize_t count = ::read(file_.number(), into.data() + got, bytes - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot("read", path_);
    if (count == 0) return failure(Errc::corrupt, path_ + " got shorter while it was read");
    got += static_cast<std::size_t>(count);
  }
  return {};
}

}  // namespace baton::server
