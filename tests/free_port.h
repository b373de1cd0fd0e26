// A port of this machine that nobody listens at, for programs that do not choose one themselves.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

#include "base/check.h"

namespace baton {

inline std::uint16_t free_port() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  BATON_CHECK(::bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0);
  BATON_CHECK(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  ::close(listener);
  return ntohs(address.sin_port);
}

}  // namespace baton
