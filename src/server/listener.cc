#include "server/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace baton::server {
namespace {

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

std::optional<SocketAddress> numeric(const Address& address) {
  SocketAddress found{};
  if (::inet_pton(AF_INET, address.host.c_str(), &found.v4.sin_addr) == 1) {
    found.v4.sin_family = AF_INET;
    found.v4.sin_port = htons(address.port);
    return found;
  }
  if (::inet_pton(AF_INET6, address.host.c_str(), &found.v6.sin6_addr) == 1) {
    found.v6.sin6_family = AF_INET6;
    found.v6.sin6_port = htons(address.port);
    return found;
  }
  return {};
}

bool is_loopback(const SocketAddress& address) {
  if (address.any.sa_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr);
  return ntohl(address.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

socklen_t length_of(const SocketAddress& address) {
  return address.any.sa_family == AF_INET6 ? sizeof address.v6 : sizeof address.v4;
}

}  // namespace

std::string peer_of(const Descriptor& socket) {
  SocketAddress peer{};
  socklen_t length = sizeof peer;
  char text[INET6_ADDRSTRLEN] = "";
  if (::getpeername(socket.number(), &peer.any, &length) != 0) return "";
  const bool is_v6 = peer.any.sa_family == AF_INET6;
  const void* number = &peer.v4.sin_addr;
  if (is_v6) number = &peer.v6.sin6_addr;
  ::inet_ntop(is_v6 ? AF_INET6 : AF_INET, number, text, sizeof text);
  return text;
}

Status Listener::open(Address& address, const char* option) {
  const std::string name = address.text();
  auto at = numeric(address);
  if (!at) return failure(Errc::invalid_request, name + ": not an address; give a number such as 127.0.0.1");
  socket_ = Descriptor(::socket(at->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int yes = 1;
  socklen_t length = length_of(*at);
  const bool listens =
      socket_.is_open() && ::setsockopt(socket_.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
      ::bind(socket_.number(), &at->any, length) == 0 && ::listen(socket_.number(), SOMAXCONN) == 0 &&
      ::getsockname(socket_.number(), &at->any, &length) == 0;
  const bool is_in_use = errno == EADDRINUSE;
  if (!listens)
    return failure(Errc::io_failed, fmt::format("cannot listen on {}: {}; choose another {} with {}{}", name,
                                                std::strerror(errno), is_in_use ? "port" : "address", option,
                                                is_in_use ? ", or stop what has it" : ""));
  address.port = ntohs(at->any.sa_family == AF_INET6 ? at->v6.sin6_port : at->v4.sin_port);
  poller_.watch(socket_.number(), Poller::For::reading, [this](Ready) { someone_waits_ = true; });
  return {};
}

void Listener::close() {
  if (!socket_.is_open()) return;
  poller_.forget(socket_.number());
  socket_ = {};
  someone_waits_ = false;
}

void Listener::accept_waiting(Instant now) {
  // Short of descriptors or memory, the next one would fail at once as well.
  constexpr Duration kPause = milliseconds(100);
  if (pause_until_ && now < *pause_until_) return;
  pause_until_.reset();
  for (int count = 0; someone_waits_ && count < kAtOnce; ++count) {
    Descriptor accepted(::accept4(socket_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted.is_open()) {
      opened_(std::move(accepted));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      pause_until_ = now + kPause;
      return;
    } else if (errno == EAGAIN) {
      someone_waits_ = false;
    }
  }
}

Status check_exposure(const ServerOptions& options) {
  if (!options.tokens.empty() || (options.tls && !options.tls->ca.empty())) return {};
  for (const Address* address : {&options.listen, options.http ? &*options.http : &options.listen}) {
    const auto at = numeric(*address);
    if (at && !is_loopback(*at))
      return failure(
          Errc::permission_denied,
          fmt::format("{}:{} can be reached from other machines, so give --tokens FILE (see `baton "
                      "token`) or --tls-client-ca FILE, or listen on 127.0.0.1",
                      address->host, address->port));
  }
  return {};
}

}  // namespace baton::server
