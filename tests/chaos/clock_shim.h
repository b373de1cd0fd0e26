// libclock_shim.so, loaded with LD_PRELOAD, moves the wall clock that a process sees by as much as a page
// says that it shares with whoever started it.
#pragma once

#include <atomic>
#include <cstdint>

namespace baton::chaos {

inline constexpr const char* kClockPage = "CLOCK_SHIM_PAGE";  // file of sizeof(ClockPage) bytes

struct ClockPage {
  std::atomic<std::int64_t> shift_ms;
  std::atomic<std::uint64_t> readings;  // so that one can tell that it was asked
};

}  // namespace baton::chaos
