#include "pipeline/fetched_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/descriptor.h"
#include "base/files.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr char kMark[] = ".baton-fetched";

std::unexpected<Error> cannot(const std::string& what, const std::string& path, int error) {
  return failure(error == ENOSPC ? Errc::no_space : Errc::io_failed,
                 what + " " + path + ": " + std::strerror(error));
}

std::string text_of(int file) {
  char bytes[256];
  const ssize_t got = ::pread(file, bytes, sizeof bytes, 0);
  return got > 0 ? std::string(bytes, static_cast<std::size_t>(got)) : std::string();
}

}  // namespace

Status make_ready_for(const std::string& run, const std::string& folder) {
  std::error_code trouble;
  fs::create_directories(folder, trouble);
  if (trouble) return cannot("cannot make", folder, trouble.value());
  const std::string mark = folder + "/" + kMark;
  const bool is_ours = fs::exists(mark, trouble) || fs::is_empty(folder, trouble);
  if (!is_ours) return {};
  const Descriptor file(::open(mark.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file.is_open()) return cannot("cannot write", mark, errno);
  // Modules of one run may come at once, also from several workers of one machine: one of them tidies up.
  const bool is_alone = ::flock(file.number(), LOCK_EX) == 0 || errno == ENOLCK || errno == EOPNOTSUPP;
  if (!is_alone) return cannot("cannot lock", mark, errno);
  if (text_of(file.number()) == run) return {};
  for (const auto& entry : fs::directory_iterator(folder, trouble)) {
    if (entry.path().filename() != kMark) fs::remove_all(entry.path(), trouble);
    if (trouble) return cannot("cannot remove", entry.path(), trouble.value());
  }
  if (::ftruncate(file.number(), 0) != 0 || !write_all(file.number(), run))
    return cannot("cannot write", mark, errno);
  return {};
}

}  // namespace baton::pipeline
