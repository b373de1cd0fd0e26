// A length of time as people say it, two units at most: 53 s, 6 min 53 s, 2 h 10 min, 4 d.
#pragma once

#include <string>

#include "base/time.h"

namespace baton::core {

inline std::string span(std::int64_t whole_seconds) {
  struct Unit {
    std::int64_t seconds;
    const char* name;
  };
  constexpr Unit kUnits[] = {{86'400, " d"}, {3'600, " h"}, {60, " min"}, {1, " s"}};
  const Unit* unit = kUnits;
  while (unit->seconds > 1 && whole_seconds < unit->seconds) ++unit;
  std::string said = std::to_string(whole_seconds / unit->seconds) + unit->name;
  if (unit->seconds == 1) return said;
  const Unit& next = unit[1];
  const std::int64_t rest = whole_seconds % unit->seconds / next.seconds;
  return rest == 0 ? said : said + " " + std::to_string(rest) + next.name;
}

}  // namespace baton::core
