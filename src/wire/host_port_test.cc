#include "wire/host_port.h"

#include <gtest/gtest.h>

namespace baton::wire {
namespace {

TEST(HostPort, IsAHostAndAPort) {
  const auto read = [](std::string_view text) {
    const auto found = parse_host_port(text);
    return found ? found->host + " " + std::to_string(found->port) : found.error().message;
  };
  EXPECT_EQ(read("127.0.0.1:7077"), "127.0.0.1 7077");
  EXPECT_EQ(read("a.example:0"), "a.example 0");
  EXPECT_EQ(read("[::1]:65535"), "::1 65535");
  for (const std::string bad :
       {"", ":", "host", "host:", ":7077", "host:65536", "host:-1", "host:7x", "[]:1"})
    EXPECT_EQ(read(bad), "'" + bad + "' is not HOST:PORT, such as 127.0.0.1:7077");
}

}  // namespace
}  // namespace baton::wire
