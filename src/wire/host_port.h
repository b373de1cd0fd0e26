// HOST:PORT, as people write it; [HOST]:PORT where the host has colons.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton::wire {

struct HostPort {
  std::string host;
  std::uint16_t port = 0;
};

Result<HostPort> parse_host_port(std::string_view text);

}  // namespace baton::wire
