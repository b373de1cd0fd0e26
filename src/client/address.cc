#include "client/address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "wire/host_port.h"

namespace baton::client {

Result<Address> parse_address(std::string_view text) {
  auto read = wire::parse_host_port(text);
  if (!read) return std::unexpected(read.error());
  if (read->port == 0)
    return failure(Errc::invalid_request, "'" + std::string(text) + "' names no port that can be called");
  return Address{std::move(read->host), std::to_string(read->port)};
}

namespace {

constexpr int kUnsentBytesMax = 64 << 10;

Result<std::vector<Endpoint>> resolve(const Address& address, int flags) {
  addrinfo wanted{};
  wanted.ai_flags = flags;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &wanted, &found);
  if (failed != 0) return failure(Errc::unavailable, address.text() + ": " + ::gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> frees(found, ::freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_addrlen > sizeof Endpoint::bytes) continue;
    Endpoint& endpoint = endpoints.emplace_back();
    std::memcpy(endpoint.bytes, one->ai_addr, one->ai_addrlen);
    endpoint.length = one->ai_addrlen;
    endpoint.family = one->ai_family;
    endpoint.text = address.text();
  }
  return endpoints;
}

}  // namespace

Result<std::vector<Endpoint>> resolve(const Address& address) { return resolve(address, 0); }

std::vector<Endpoint> resolve_number(const Address& address) {
  return resolve(address, AI_NUMERICHOST).value_or(std::vector<Endpoint>());
}

Result<int> begin_connecting(const Endpoint& endpoint) {
  const int socket = ::socket(endpoint.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket >= 0) {
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    // The system takes bytes as the network does, and not megabytes ahead of it: that it takes more shows
    // that the other side lives.
    ::setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytesMax, sizeof kUnsentBytesMax);
    const auto* where = reinterpret_cast<const sockaddr*>(endpoint.bytes);
    if (::connect(socket, where, endpoint.length) == 0 || errno == EINPROGRESS) return socket;
  }
  const int error = errno;
  if (socket >= 0) ::close(socket);
  return failure(Errc::unavailable, endpoint.text + ": " + std::strerror(error));
}

}  // namespace baton::client
