// Coordinator time. An Instant is milliseconds since 1970 as the coordinator counts them: it never
// runs backwards, not even across a restart. Only the engine makes instants; everyone else is given one.
#pragma once

#include <compare>
#include <cstdint>

namespace baton {

struct Duration {
  std::int64_t ms = 0;
  friend auto operator<=>(const Duration&, const Duration&) = default;
};

struct Instant {
  std::int64_t ms = 0;
  friend auto operator<=>(const Instant&, const Instant&) = default;
};

constexpr Duration milliseconds(std::int64_t count) { return {count}; }
constexpr Duration seconds(std::int64_t count) { return {count * 1000}; }
constexpr Duration minutes(std::int64_t count) { return seconds(count * 60); }
constexpr Duration hours(std::int64_t count) { return minutes(count * 60); }
constexpr Duration days(std::int64_t count) { return hours(count * 24); }

constexpr Instant operator+(Instant at, Duration by) { return {at.ms + by.ms}; }
constexpr Instant operator-(Instant at, Duration by) { return {at.ms - by.ms}; }
constexpr Duration operator+(Duration a, Duration b) { return {a.ms + b.ms}; }
constexpr Duration operator-(Duration a, Duration b) { return {a.ms - b.ms}; }
constexpr Duration operator-(Instant later, Instant earlier) { return {later.ms - earlier.ms}; }

}  // namespace baton
