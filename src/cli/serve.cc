#include "cli/serve.h"

#include <fmt/format.h>

#include <charconv>

#include "server/server.h"

namespace baton::cli {
namespace {

Result<server::Address> parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  server::Address address;
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, address.port);
    if (error == std::errc{} && stop == end) return address;
  }
  return failure(Errc::invalid_request, fmt::format("'{}' is not HOST:PORT, such as 127.0.0.1:7077", text));
}

int complain(const Error& error) {
  fmt::print(stderr, "baton serve: {}: {}\n", word(error.code), error.message);
  return 1;
}

}  // namespace

int run_serve(const ServeOptions& options) {
  auto address = parse_address(options.listen);
  if (!address) return complain(address.error());
  auto http = parse_address(options.http);
  if (!http) return complain(http.error());
  auto opened = server::Server::open(
      {.directory = options.directory, .coordinator = {}, .listen = *address, .http = *http});
  if (!opened) return complain(opened.error());
  server::Server& server = **opened;
  const RecoverySummary& recovery = server.recovery();
  fmt::print("baton {} serves RESP on {}:{} and HTTP on {}:{}\n", BATON_VERSION, server.address().host,
             server.address().port, server.http_address()->host, server.http_address()->port);
  fmt::print("data in {}; recovered in {} ms ({} entries replayed)\n", options.directory, recovery.took.ms,
             recovery.replayed);
  fmt::print("try:  redis-cli -p {} SUBMIT mail hello\n", server.address().port);
  std::fflush(stdout);
  if (auto done = server.run(); !done) return complain(done.error());
  fmt::print("stopped, everything is on disk\n");
  return 0;
}

}  // namespace baton::cli
