#include "client/address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>

namespace baton::client {

Result<Address> parse_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  if (colon != std::string_view::npos && colon > 0) {
    std::string_view host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
    if (error == std::errc{} && stop == end && port > 0 && !host.empty())
      return Address{std::string(host), std::to_string(port)};
  }
  return failure(Errc::invalid_request,
                 "'" + std::string(text) + "' is not HOST:PORT, such as 127.0.0.1:7077");
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
