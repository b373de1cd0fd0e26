#include "cli/serve.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "cli/command_line.h"
#include "server/access.h"
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

void print_what_to_try(const server::Server& server) {
  const auto port = server.address().port;
  fmt::print("try, from another terminal:\n");
  fmt::print("  redis-cli -p {} SUBMIT mail hello\n", port);
  fmt::print("  redis-cli -p {} LEASE worker-1 mail\n", port);
  fmt::print("  curl -s http://127.0.0.1:{}/v1/queues\n", server.http_address()->port);
}

}  // namespace

int run_serve(const ServeOptions& options) {
  auto address = parse_address(options.listen);
  if (!address) return complain(address.error());
  auto http = parse_address(options.http);
  if (!http) return complain(http.error());
  server::ServerOptions serve{.directory = options.directory, .listen = *address, .http = *http};
  serve.tokens = options.tokens;
  if (!options.tls.certificate.empty() || !options.tls.key.empty() || !options.tls.client_ca.empty())
    serve.tls = options.tls;
  auto opened = server::Server::open(std::move(serve));
  if (!opened) return complain(opened.error());
  server::Server& server = **opened;
  const RecoverySummary& recovery = server.recovery();
  fmt::print("baton {} serves RESP on {}:{} and HTTP on {}:{}\n", BATON_VERSION, server.address().host,
             server.address().port, server.http_address()->host, server.http_address()->port);
  fmt::print("data in {}; recovered in {} ms ({} entries replayed)\n", options.directory, recovery.took.ms,
             recovery.replayed);
  if (options.tokens.empty() && options.tls.certificate.empty()) print_what_to_try(server);
  std::fflush(stdout);
  if (auto done = server.run(); !done) return complain(done.error());
  fmt::print("stopped, everything is on disk\n");
  return 0;
}

int run_token(const std::string& name, const std::string& allowed) {
  const server::NewToken made = server::make_token();
  const std::string entry = fmt::format("{} {} {}", name, made.hash, allowed);
  if (auto read = server::Access::read(entry); !read) return complain(read.error());
  fmt::print("{}\n", entry);
  fmt::print(stderr,
             "baton: that line is for the file of --tokens. The token, which is shown only now:\n{}\n",
             made.token);
  return 0;
}

void add_serve_command(CommandLine& line) {
  // The closure that runs the command shares the options with the parser that fills them.
  auto options = std::make_shared<ServeOptions>();
  line.command("serve", "Serves clients and workers")
      .option("--data DIR", options->directory, "Data directory, made if need be")
      .option("--listen HOST:PORT", options->listen, "Where to listen for the Redis protocol")
      .option("--http HOST:PORT", options->http, "Where to listen for HTTP")
      .option("--tokens FILE", options->tokens,
              "File of names, tokens and what each may do; see `baton token`")
      .option("--tls-certificate FILE", options->tls.certificate,
              "Certificate chain, PEM; clients then have to use TLS")
      .option("--tls-key FILE", options->tls.key, "Its key, PEM")
      .option("--tls-client-ca FILE", options->tls.client_ca,
              "Clients have to show a certificate signed by one of these")
      .footer("Example: " + line.program() + " serve --data data --listen 127.0.0.1:7077")
      .run([options] { return run_serve(*options); });
  auto name = std::make_shared<std::string>();
  auto allowed = std::make_shared<std::string>("default=all");
  line.command("token", "Makes a token, and the line about it for the file of `baton serve --tokens`")
      .argument("name", *name, "Whose it is")
      .option("--allow TEXT", *allowed,
              "NAMESPACE=submit,work,query,admin or NAMESPACE=all, several in quotes; * is every one")
      .footer("Example: " + line.program() + " token ci --allow 'default=submit,query' >> tokens")
      .run([name, allowed] { return run_token(*name, *allowed); });
}

}  // namespace baton::cli
