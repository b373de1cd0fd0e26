#include "wire/host_port.h"

#include <charconv>

namespace baton::wire {

Result<HostPort> parse_host_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    std::string_view host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    HostPort read{std::string(host), 0};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, read.port);
    if (error == std::errc{} && stop == end && !host.empty()) return read;
  }
  return failure(Errc::invalid_request,
                 "'" + std::string(text) + "' is not HOST:PORT, such as 127.0.0.1:7077");
}

}  // namespace baton::wire
