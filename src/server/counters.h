// What happened since the start, counted for operators. One thread counts.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>

#include "base/time.h"

namespace baton::server {

struct Counters {
  Instant since;
  std::map<std::string_view, std::uint64_t> commands;    // by verb; the names live for ever
  std::map<std::string_view, std::uint64_t> rejections;  // by code
  std::map<std::string_view, std::uint64_t> entries;     // by event
  std::uint64_t connections_resp = 0;                    // open now
  std::uint64_t connections_http = 0;
  std::uint64_t sessions = 0;  // of the Redis protocol, begun ever; numbers them
  std::uint64_t connections_total = 0;
  std::uint64_t connections_refused = 0;
};

}  // namespace baton::server
