// Where a coordinator listens, as people write it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton::client {

struct Address {
  std::string host;
  std::string port;

  std::string text() const { return host + ":" + port; }
};

// HOST:PORT, or [HOST]:PORT where the host has colons.
Result<Address> parse_address(std::string_view text);

// One of the addresses that a host has, for the system's calls.
struct Endpoint {
  alignas(8) std::byte bytes[128];
  unsigned length = 0;
  int family = 0;
  std::string text;
};

// Blocks for as long as whoever knows names takes; a number is known at once.
Result<std::vector<Endpoint>> resolve(const Address& address);
// The same of a host that is written as a number; nothing of any other.
std::vector<Endpoint> resolve_number(const Address& address);

// A socket that does not block, on its way to be connected.
Result<int> begin_connecting(const Endpoint& endpoint);

}  // namespace baton::client
