#include "tests/checkpoint/disk_calls.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>

#include "base/check.h"

namespace baton::checkpoint {
namespace {

std::atomic<DiskCalls*> watching = nullptr;

// The names of attempts and of files aside have 16 digits by chance.
std::string without_chance(std::string path) {
  constexpr std::size_t kDigits = 16;
  for (std::size_t at = 0; at + kDigits < path.size(); ++at) {
    const auto digits = std::string_view(path).substr(at + 1, kDigits);
    if ((path[at] == '-' || path[at] == '.') &&
        std::ranges::all_of(digits, [](unsigned char c) { return std::isxdigit(c); }))
      path.erase(at--, 1 + kDigits);
  }
  return path;
}

std::string path_of(int descriptor) {
  char path[4096];
  const ssize_t length =
      ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), path, sizeof path);
  return {path, static_cast<std::size_t>(length > 0 ? length : 0)};
}

// Whether the call is to be made; otherwise errno says what it came to. Asks for no memory if nobody watches.
bool is_let_through(const char* call, const auto& path) {
  DiskCalls* const watch = watching;
  if (watch == nullptr) return true;
  const int fault = watch->note(call, path());
  if (fault != 0) errno = fault;
  return fault == 0;
}

}  // namespace

DiskCalls::DiskCalls(std::string directory, Fault fault)
    : directory_(std::move(directory)), fault_(std::move(fault)) {
  DiskCalls* none = nullptr;
  BATON_CHECK(watching.compare_exchange_strong(none, this));
}

DiskCalls::~DiskCalls() { watching = nullptr; }

std::vector<std::string> DiskCalls::all() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

int DiskCalls::note(const std::string& call, const std::string& path) {
  if (!path.starts_with(directory_)) return 0;
  const std::string noted = call + " " + without_chance(path.substr(directory_.size()));
  const std::lock_guard lock(mutex_);
  calls_.push_back(noted);
  return fault_ ? fault_(noted) : 0;
}

}  // namespace baton::checkpoint

// In place of the C library's.
extern "C" int fsync(int descriptor) {
  const auto path = [&] { return baton::checkpoint::path_of(descriptor); };
  if (!baton::checkpoint::is_let_through("fsync", path)) return -1;
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

extern "C" int link(const char* from, const char* to) noexcept {
  if (!baton::checkpoint::is_let_through("link", [&] { return std::string(to); })) return -1;
  return static_cast<int>(::syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0));
}
