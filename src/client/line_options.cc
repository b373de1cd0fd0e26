#include "client/line_options.h"

#include <utility>

#include "client/command.h"

namespace baton::client {

Result<LineOptions> line_options(const ClientOptions& options) {
  LineOptions line;
  line.connect_timeout = options.connect_timeout;
  line.silence_max = options.silence_max;
  line.backoff_min = options.backoff_min;
  line.backoff_max = options.backoff_max;
  line.reply.bytes_max = options.reply_bytes_max;
  line.news = options.news;
  if (options.addresses.empty()) return failure(Errc::invalid_request, "the client was given no address");
  for (const std::string& text : options.addresses) {
    auto address = parse_address(text);
    if (!address) return std::unexpected(std::move(address.error()));
    line.addresses.push_back(std::move(*address));
  }
  if (options.tls) {
    auto loaded = wire::TlsContext::for_client({options.tls->certificate, options.tls->key, options.tls->ca});
    if (!loaded) return std::unexpected(std::move(loaded.error()));
    line.tls = std::move(*loaded);
  }

  const auto greet = [&](const Command& command) {
    line.greeting += command.whole();
    ++line.greetings;
  };
  // First, so that nobody has to answer a stranger's HELLO.
  if (!options.token.empty()) {
    Command command("AUTH");
    if (!options.user.empty()) command.add(options.user);
    greet(command.add(options.token));
  }
  greet(Command("HELLO").add("3"));
  if (!options.ns.empty()) greet(Command("USE").add(options.ns));
  return line;
}

}  // namespace baton::client
