// A port of this machine that nobody listens at, for programs that do not choose one themselves. It is kept
// until the object is gone: the kernel gives it to nobody else meanwhile, and a server that asks for
// SO_REUSEADDR can listen there all the same.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "base/check.h"
#include "base/descriptor.h"

namespace baton {

class FreePort {
 public:
  FreePort() {
    const int yes = 1;
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    BATON_CHECK(::setsockopt(keeper_.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
    BATON_CHECK(::bind(keeper_.number(), reinterpret_cast<sockaddr*>(&address), length) == 0);
    BATON_CHECK(::getsockname(keeper_.number(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
    number_ = ntohs(address.sin_port);
  }

  std::uint16_t number() const { return number_; }

 private:
  Descriptor keeper_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::uint16_t number_ = 0;
};

}  // namespace baton
