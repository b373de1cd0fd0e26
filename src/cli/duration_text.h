// Durations as people write and read them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace baton::cli {

// 250ms, 30s, 5m, 1h30m, 2d; a plain 0 is fine too. Nothing if it is none of these.
std::optional<Duration> parse_duration(std::string_view text);

// The same way round, exactly: 1h30m.
std::string duration_text(Duration duration);

// The two largest units at most, for tables: 850ms, 12s, 3m05s, 2h10m, 4d03h.
std::string rough_text(Duration duration);

}  // namespace baton::cli
