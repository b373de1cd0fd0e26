#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "cli/output.h"
#include "client/call.h"

namespace baton::cli {
namespace {

constexpr std::int64_t kEveryMs = 100;
constexpr std::uint64_t kWidth = 24;

}  // namespace

Progress::Progress(const char* what)
    : what_(what),
      on_terminal_(::isatty(STDERR_FILENO) == 1),
      began_at_(client::now_ms()),
      shown_at_(began_at_) {}

void Progress::show(std::uint64_t count, std::uint64_t part, std::uint64_t whole) {
  if (!on_terminal_) return;
  const std::int64_t now = client::now_ms();
  if (now - shown_at_ < kEveryMs) return;
  shown_at_ = now;
  std::string bar;
  if (whole > 0) {
    const std::uint64_t done = std::min(part, whole) * kWidth / whole;
    bar = fmt::format("[{:#<{}}{:.<{}}] {:3} %   ", "", done, "", kWidth - done,
                      std::min(part, whole) * 100 / whole);
  }
  const auto rate = count * 1000 / static_cast<std::uint64_t>(std::max<std::int64_t>(now - began_at_, 1));
  to_errors("\r\x1b[K{}{} {}   {} {}/s", bar, count, what_, rate, what_);
  std::fflush(stderr);
  visible_ = true;
}

void Progress::clear() {
  if (!visible_) return;
  to_errors("\r\x1b[K");
  std::fflush(stderr);
  visible_ = false;
}

}  // namespace baton::cli
