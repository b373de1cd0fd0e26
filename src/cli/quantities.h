// Numbers, times and sizes as people write and read them. A complaint says what is wrong with the text, not
// whose it is: "'abc' is not a number", "0 is not from 1 to 9".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace baton::cli {

inline constexpr Duration kTimeMax = days(36'500);

Result<std::uint64_t> read_number(std::string_view text, std::uint64_t min = 0,
                                  std::uint64_t max = UINT64_MAX);
Result<Duration> read_time(std::string_view text, Duration min = {},
                           Duration max = kTimeMax);  // 250ms, 30s, 1h30m, 0
Result<std::uint64_t> read_size(std::string_view text, std::uint64_t min = 0,
                                std::uint64_t max = UINT64_MAX);  // 4096, 256KiB, 64MiB

Instant wall_clock();  // the coordinator's clock is not ours, but its instants are times of day

std::string counted(std::uint64_t number, std::string_view what);  // 1 task, 2 tasks
std::string time_text(Duration duration);                          // exactly, as it would be written: 1h30m
std::string rough_text(Duration duration);  // two units at most: 850ms, 12s, 3m05s, 2h10m, 4d03h
std::string milliseconds_text(std::uint64_t microseconds);  // 0.42ms
std::string size_text(std::uint64_t bytes);                 // 64MiB, 1.5GiB, 812B

}  // namespace baton::cli
