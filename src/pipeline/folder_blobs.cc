#include "pipeline/folder_blobs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/files.h"
#include "base/random_name.h"
#include "wire/sha256.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAside = ".tmp";

std::unexpected<Error> cannot(const char* what, const std::string& path, int error) {
  const Errc code = error == ENOSPC || error == EDQUOT  ? Errc::no_space
                    : error == EACCES || error == EROFS ? Errc::permission_denied
                    : error == ENOENT                   ? Errc::not_found
                                                        : Errc::io_failed;
  return failure(code, std::string("cannot ") + what + " " + path + ": " + std::strerror(error));
}

Status make_folder(const std::string& path) {
  std::error_code trouble;
  fs::create_directories(path, trouble);
  if (trouble) return cannot("make", path, trouble.value());
  return {};
}

// A file that is removed again, unless it gets its name.
class FileAside {
 public:
  explicit FileAside(std::string path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {}
  ~FileAside() {
    if (is_open() && !has_name_) ::unlink(path_.c_str());
  }
  FileAside(const FileAside&) = delete;
  FileAside& operator=(const FileAside&) = delete;

  Status write(std::string_view bytes) const {
    if (!write_all(file_.number(), bytes)) return cannot("write", path_, errno);
    return {};
  }
  bool is_open() const { return file_.is_open(); }
  Status name(const std::string& path) {
    if (::fsync(file_.number()) != 0) return cannot("sync", path_, errno);
    if (::rename(path_.c_str(), path.c_str()) != 0) return cannot("write", path, errno);
    has_name_ = true;
    return {};
  }

 private:
  const std::string path_;
  const Descriptor file_;
  bool has_name_ = false;
};

// As put() names what it is writing: a random name, and that.
bool is_aside(std::string_view name) {
  constexpr std::size_t kDigits = 16;
  return name.find_first_not_of("0123456789abcdef") == kDigits && name.substr(kDigits) == kAside;
}

// None, where it cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code trouble;
  for (fs::directory_iterator entry(folder, trouble), end; !trouble && entry != end; entry.increment(trouble))
    all.push_back(entry->path());
  return all;
}

// Whoever wants it has a use for it: it is not swept for a while.
void touch(const std::string& path) { ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

}  // namespace

Result<BlobRef> FolderBlobs::put(const ByteSource& from, const std::stop_token& stop) {
  if (auto made = make_folder(folder_); !made) return std::unexpected(made.error());
  const std::string aside = folder_ + "/" + random_name() + std::string(kAside);
  FileAside file(aside);
  if (!file.is_open()) return cannot("write", aside, errno);
  BlobRef blob;
  wire::Sha256 hash;
  auto done = from([&](std::string_view bytes) -> Status {
    if (stop.stop_requested()) return failure(Errc::closed, "stopped");
    hash.add(bytes);
    blob.bytes += bytes.size();
    return file.write(bytes);
  });
  if (!done) return std::unexpected(done.error());
  blob.hash = hash.hex();
  const std::string path = path_of(blob);
  const std::string below = fs::path(path).parent_path();
  // Over one that is there: it may have been damaged since.
  if (done = make_folder(below); done) done = file.name(path);
  if (done) done = sync_directory(below);
  if (done) done = sync_directory(folder_);
  if (!done) return std::unexpected(done.error());
  return blob;
}

Status FolderBlobs::pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) {
  if (!wire::is_sha256(blob.hash)) return failure(Errc::invalid_request, "'" + blob.hash + "' names no blob");
  touch(path_of(blob));
  return bytes_of_file(path_of(blob))([&](std::string_view bytes) -> Status {
    if (stop.stop_requested()) return failure(Errc::closed, "stopped");
    return into(bytes);
  });
}

Result<bool> FolderBlobs::has(const BlobRef& blob, const std::stop_token&) {
  if (!wire::is_sha256(blob.hash) || ::access(path_of(blob).c_str(), R_OK) != 0) return false;
  touch(path_of(blob));
  return true;
}

void FolderBlobs::sweep(const std::set<std::string>& named, Duration young) const {
  const auto limit = fs::file_time_type::clock::now() - std::chrono::milliseconds(young.ms);
  const auto remove_if_old = [&](const fs::path& path) {
    std::error_code trouble;
    const auto last_used = fs::last_write_time(path, trouble);
    if (!trouble && last_used < limit) fs::remove(path, trouble);
  };
  for (const fs::path& entry : entries_of(folder_)) {
    const std::string name = entry.filename();
    if (is_aside(name)) remove_if_old(entry);
    if (name.size() != kPrefix) continue;
    for (const fs::path& blob : entries_of(entry)) {
      const std::string hash = blob.filename();
      if (wire::is_sha256(hash) && hash.starts_with(name) && !named.contains(hash)) remove_if_old(blob);
    }
  }
}

TemporaryBlobs::TemporaryBlobs()
    : FolderBlobs((fs::temp_directory_path() / ("baton-blobs-" + random_name())).string()) {}

TemporaryBlobs::~TemporaryBlobs() {
  std::error_code ignored;  // nobody is left to be told
  fs::remove_all(place(), ignored);
}

Result<BlobRef> TemporaryBlobs::put(const ByteSource& from, const std::stop_token& stop) {
  ::mkdir(place().c_str(), 0700);  // where there can be none, it is told below
  return FolderBlobs::put(from, stop);
}

}  // namespace baton::pipeline
