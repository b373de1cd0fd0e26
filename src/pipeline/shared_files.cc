#include "pipeline/shared_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/descriptor.h"
#include "base/files.h"
#include "base/hash.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;

std::unexpected<Error> cannot(const std::string& what, const std::string& path, int error) {
  const Errc code = error == ENOSPC || error == EDQUOT  ? Errc::no_space
                    : error == EACCES || error == EROFS ? Errc::permission_denied
                    : error == ENOENT                   ? Errc::not_found
                                                        : Errc::io_failed;
  return failure(code, what + " " + path + ": " + std::strerror(error));
}

std::int64_t milliseconds_of(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

}  // namespace

bool sync_name(const std::string& path) {
  const Descriptor folder(::open(parent_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some network file systems cannot be asked to, and keep names as they are made.
  return folder.is_open() && (::fsync(folder.number()) == 0 || errno == EINVAL || errno == ENOTSUP);
}

SharedFiles::~SharedFiles() {
  if (has_clock_) remove(clock_);
}

Status SharedFiles::make_folder(const std::string& name) const {
  std::error_code trouble;
  const bool is_new = fs::create_directories(path(name), trouble);
  if (trouble) return cannot("cannot make", path(name), trouble.value());
  if (is_new && !sync_name(path(name))) return cannot("cannot make", path(name), errno);
  return {};
}

Result<std::string> SharedFiles::read(const std::string& name) const {
  const Descriptor file(::open(path(name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return cannot("cannot read", path(name), errno);
  std::string text;
  char bytes[16 << 10];
  for (;;) {
    const ssize_t got = ::read(file.number(), bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot("cannot read", path(name), errno);
    if (got == 0) return text;
    text.append(bytes, static_cast<std::size_t>(got));
  }
}

Result<std::string> SharedFiles::write_aside(const std::string& name, std::string_view text) const {
  const fs::path whole(path(name));
  const std::string aside = (whole.parent_path() / ("." + random_name())).string();
  const Descriptor file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.is_open()) return cannot("cannot write", aside, errno);
  if (!write_all(file.number(), text) || ::fsync(file.number()) != 0) {
    const int error = errno;
    ::unlink(aside.c_str());
    return cannot("cannot write", path(name), error);
  }
  return aside;
}

Status SharedFiles::write(const std::string& name, std::string_view text) const {
  auto aside = write_aside(name, text);
  if (!aside) return std::unexpected(aside.error());
  if (::rename(aside->c_str(), path(name).c_str()) == 0 && sync_name(path(name))) return {};
  const int error = errno;
  ::unlink(aside->c_str());
  return cannot("cannot write", path(name), error);
}

Result<bool> SharedFiles::write_new(const std::string& name, std::string_view text) const {
  auto aside = write_aside(name, text);
  if (!aside) return std::unexpected(aside.error());
  const bool is_new = ::link(aside->c_str(), path(name).c_str()) == 0 && sync_name(path(name));
  const int error = errno;
  ::unlink(aside->c_str());
  if (is_new) return true;
  if (error == EEXIST) return false;
  return cannot("cannot write", path(name), error);
}

Result<bool> SharedFiles::rename(const std::string& from, const std::string& to) const {
  if (::rename(path(from).c_str(), path(to).c_str()) == 0) {
    if (!sync_name(path(to))) return cannot("cannot sync", path(to), errno);
    return true;
  }
  if (errno == ENOENT) return false;
  return cannot("cannot rename", path(from), errno);
}

void SharedFiles::remove(const std::string& name) const { ::unlink(path(name).c_str()); }

bool SharedFiles::exists(const std::string& name) const { return ::access(path(name).c_str(), F_OK) == 0; }

Status SharedFiles::touch(const std::string& name) const {
  // Without a time given, that of the file server is taken.
  if (::utimensat(AT_FDCWD, path(name).c_str(), nullptr, 0) == 0) return {};
  return cannot("cannot touch", path(name), errno);
}

Result<std::optional<Duration>> SharedFiles::age(const std::string& name) const {
  struct stat about{};
  if (::stat(path(name).c_str(), &about) != 0) {
    if (errno == ENOENT) return std::optional<Duration>();
    return cannot("cannot look at", path(name), errno);
  }
  // What time it is, the file system says: by a file that is written now.
  const std::string probe = path(clock_);
  has_clock_ = true;
  const Descriptor file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file.is_open() || ::futimens(file.number(), nullptr) != 0) return cannot("cannot write", probe, errno);
  struct stat now{};
  if (::fstat(file.number(), &now) != 0) return cannot("cannot look at", probe, errno);
  return Duration{std::max<std::int64_t>(0, milliseconds_of(now.st_mtim) - milliseconds_of(about.st_mtim))};
}

Result<std::vector<std::string>> SharedFiles::list(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code trouble;
  for (fs::directory_iterator entry(path(folder), trouble), end; !trouble && entry != end;
       entry.increment(trouble)) {
    std::string name = entry->path().filename().string();
    if (!name.starts_with('.')) names.push_back(std::move(name));
  }
  if (trouble && trouble != std::errc::no_such_file_or_directory)
    return cannot("cannot list", path(folder), trouble.value());
  std::ranges::sort(names);
  return names;
}

std::string as_file_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          (c == '.' && !name.empty()) || c == '_';
    if (is_plain) {
      name += c;
      continue;
    }
    char escaped[4];
    std::snprintf(escaped, sizeof escaped, "%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
    name += escaped;
  }
  constexpr std::size_t kLongest = 120;
  if (name.size() > kLongest)
    name = name.substr(0, kLongest) + "%" + std::to_string(content_hash(bytes_of(text)));
  return name;
}

}  // namespace baton::pipeline
