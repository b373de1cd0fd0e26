#include "cli/line_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/limits.h"

namespace baton::cli {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;

// Appends what is there, waiting for the first byte of it; how much, 0 at the end.
Result<std::size_t> read_some(int descriptor, std::string& buffer) {
  const std::size_t before = buffer.size();
  buffer.resize(before + kReadBytes);
  ssize_t got = -1;
  do {
    got = ::read(descriptor, buffer.data() + before, kReadBytes);
  } while (got < 0 && errno == EINTR);
  buffer.resize(before + static_cast<std::size_t>(got < 0 ? 0 : got));
  if (got < 0)
    return failure(Errc::io_failed, fmt::format("the input cannot be read: {}", std::strerror(errno)));
  return static_cast<std::size_t>(got);
}

}  // namespace

Result<int> LineReader::open(const std::string& path) {
  if (path == "-") return STDIN_FILENO;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return failure(Errc::not_found, fmt::format("{}: {}", path, std::strerror(errno)));
  struct stat status{};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    return failure(Errc::invalid_request, path + " is a directory, not a file");
  }
  return descriptor;
}

LineReader::LineReader(int descriptor) : descriptor_(descriptor) {
  struct stat status{};
  if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode))
    bytes_total_ = static_cast<std::size_t>(status.st_size);
}

LineReader::~LineReader() {
  if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
}

bool LineReader::would_wait() const { return !ended_ && buffer_.find('\n', begin_) == std::string::npos; }

Status LineReader::fill() {
  buffer_.erase(0, begin_);
  begin_ = 0;
  auto got = read_some(descriptor_, buffer_);
  if (!got) return std::unexpected(got.error());
  ended_ = *got == 0;
  bytes_read_ += *got;
  return {};
}

std::optional<Result<std::string>> LineReader::next() {
  for (std::size_t searched = begin_;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos || (ended_ && begin_ < buffer_.size())) {
      std::string line = buffer_.substr(begin_, end == std::string::npos ? end : end - begin_);
      begin_ = end == std::string::npos ? buffer_.size() : end + 1;
      return line;
    }
    if (ended_) return {};
    searched = buffer_.size() - begin_;
    Status filled =
        searched > kLineBytesMax ? failure(Errc::too_large, "a line is longer than 4 MiB") : fill();
    if (!filled) {
      ended_ = true;
      buffer_.clear();
      begin_ = 0;
      return std::unexpected(filled.error());
    }
  }
}

Result<std::string> read_whole(const std::string& path) {
  auto descriptor = LineReader::open(path);
  if (!descriptor) return std::unexpected(descriptor.error());
  std::string content;
  Result<std::size_t> got = 0;
  do {
    got = read_some(*descriptor, content);
  } while (got && *got > 0 && content.size() <= core::kPayloadBytesHardMax);
  if (*descriptor != STDIN_FILENO) ::close(*descriptor);
  if (!got) return std::unexpected(got.error());
  if (content.size() > core::kPayloadBytesHardMax)
    return failure(Errc::too_large,
                   fmt::format("{} is over {} bytes, and no coordinator takes a larger payload",
                               path == "-" ? "standard input" : path, core::kPayloadBytesHardMax));
  return content;
}

}  // namespace baton::cli
