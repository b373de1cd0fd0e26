#include "cli/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/quantities.h"
#include "client/address.h"
#include "core/names.h"

namespace baton::cli {
namespace {

constexpr Duration kGreetingMax = seconds(5);
constexpr std::string_view kPing = "*1\r\n$4\r\nPING\r\n";

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { ::close(descriptor_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  bool becomes(short event, Duration within) const {
    pollfd polled{.fd = descriptor_, .events = event, .revents = 0};
    return ::poll(&polled, 1, static_cast<int>(within.ms)) > 0;
  }
  int trouble() const {
    int error = 0;
    socklen_t length = sizeof error;
    return ::getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
  }
  int descriptor() const { return descriptor_; }

 private:
  const int descriptor_;
};

std::unexpected<Error> unreachable(const client::Address& address, const std::string& why) {
  return failure(Errc::unavailable, fmt::format("{}: {}", address.text(), why));
}

std::unexpected<Error> unreachable(Error error) {
  if (error.message.ends_with(std::strerror(ECONNREFUSED)))
    error.message += ". `baton serve` starts a server; --connect HOST:PORT says where one is";
  return std::unexpected(std::move(error));
}

bool uses_tls(const Connection& connection) {
  const client::TlsOptions& files = connection.tls_files;
  return connection.tls || !files.ca.empty() || !files.certificate.empty() || !files.key.empty();
}

enum class Language : bool { plain, tls };

// Somebody answers there, and in the right language; with TLS that is the client's to find out.
Status greet(const client::Address& address, const client::Endpoint& endpoint, Duration within,
             Language language) {
  auto connecting = client::begin_connecting(endpoint);
  if (!connecting) return unreachable(std::move(connecting.error()));
  const Socket socket(*connecting);
  if (!socket.becomes(POLLOUT, within)) return unreachable(address, "no answer; is it the right host?");
  if (const int error = socket.trouble(); error != 0)
    return unreachable(unreachable(address, std::strerror(error)).error());
  if (language == Language::tls) return {};
  char answer = 0;
  if (::send(socket.descriptor(), kPing.data(), kPing.size(), MSG_NOSIGNAL) < 0 ||
      !socket.becomes(POLLIN, within) || ::recv(socket.descriptor(), &answer, 1, 0) != 1)
    return unreachable(address, "whoever listens there does not answer; if it wants TLS, say --tls");
  if (answer == '+' || answer == '-') return {};  // an error is fine: it may want to know who we are first
  if (answer == 'H') return unreachable(address, "that is an HTTP port; the other one is wanted here");
  return unreachable(address, "whoever listens there is no coordinator, or wants TLS: --tls");
}

Status greet(const std::string& text, Duration within, Language language) {
  auto address = client::parse_address(text);
  if (!address) return failure(address.error().code, "--connect: " + address.error().message);
  auto endpoints = client::resolve(*address);
  if (!endpoints) return std::unexpected(endpoints.error());
  Status said = unreachable(*address, "the host has no address");
  for (const client::Endpoint& endpoint : *endpoints) {
    said = greet(*address, endpoint, within, language);
    if (said) return said;
  }
  return said;
}

// Says on standard error what becomes of connections, and nothing twice in a row: a client has several
// connections, and tries again and again. Used by the client's own thread.
class Crier {
 public:
  explicit Crier(Breaks breaks) : breaks_(breaks) {}

  void tell(const client::ConnectionNews& news) {
    if (breaks_ == Breaks::untold && !news.was_turned_away) return;
    if (news.trouble.empty()) {
      if (!std::exchange(last_, {}).empty()) to_errors("baton: connected to {}\n", news.address);
    } else if (news.trouble != std::exchange(last_, news.trouble)) {
      to_errors("baton: {}; {} is tried {}\n", news.trouble, news.address,
                news.wait > Duration{} ? "in " + rough_text(news.wait) : "now");
    }
  }

 private:
  const Breaks breaks_;
  std::string last_;
};

Result<std::string> read_token(const Connection& connection) {
  if (connection.token_file.empty()) {
    const char* token = std::getenv("BATON_TOKEN");
    return token == nullptr ? "" : token;
  }
  std::ifstream file(connection.token_file);
  if (!file)
    return failure(Errc::io_failed, fmt::format("{}: {}; --token-file names a file with a token in it",
                                                connection.token_file, std::strerror(errno)));
  std::string token;
  if (!(file >> token))
    return failure(Errc::io_failed, fmt::format("{}: there is no token in it; `baton token` makes one",
                                                connection.token_file));
  return token;
}

}  // namespace

void add_connection_options(Command& command, Connection& connection) {
  command.heading(kConnectionHeading)
      .options("--connect HOST:PORT", connection.addresses,
               "Where the coordinator is; several are tried in turn")
      .environment("BATON_CONNECT")
      .option("--namespace NAME", connection.ns, "Where tasks and queues are looked for")
      .environment("BATON_NAMESPACE")
      .option("--user NAME", connection.user, "Whose token it is, if the coordinator has to be told")
      .environment("BATON_USER")
      .option("--token-file FILE", connection.token_file, "The token; else it is in $BATON_TOKEN")
      .flag("--tls", connection.tls, "Use TLS; the options below mean it too")
      .environment("BATON_TLS")
      .option("--tls-ca FILE", connection.tls_files.ca,
              "PEM: who may have signed the coordinator's certificate")
      .environment("BATON_TLS_CA")
      .option("--tls-certificate FILE", connection.tls_files.certificate,
              "PEM: ours, for a coordinator that asks for it")
      .option("--tls-key FILE", connection.tls_files.key, "Its key, PEM")
      .duration("--timeout TIME", connection.timeout, "How long one request may take");
}

Result<client::ClientOptions> client_options(const Connection& connection, Breaks breaks) {
  if (!core::is_name(connection.ns))
    return failure(Errc::invalid_request,
                   fmt::format("--namespace: '{}' is not 1 to 128 graphic ASCII characters", connection.ns));
  auto token = read_token(connection);
  if (!token) return std::unexpected(token.error());
  Status reached;
  for (const std::string& address : connection.addresses) {
    reached = greet(address, std::min(connection.timeout, kGreetingMax),
                    uses_tls(connection) ? Language::tls : Language::plain);
    if (reached) break;
  }
  if (!reached) return std::unexpected(reached.error());
  client::ClientOptions options{.addresses = connection.addresses,
                                .user = connection.user,
                                .token = *token,
                                .ns = connection.ns,
                                .deadline = connection.timeout,
                                .bytes_max = std::size_t{64} << 20};
  options.news = [crier = std::make_shared<Crier>(breaks)](const auto& news) { crier->tell(news); };
  if (uses_tls(connection)) options.tls = connection.tls_files;
  return options;
}

Result<std::unique_ptr<client::Client>> connect(const Connection& connection, Breaks breaks) {
  auto options = client_options(connection, breaks);
  if (!options) return std::unexpected(options.error());
  return std::make_unique<client::Client>(*options);
}

int with_client(const Connection& connection, Format format, const std::function<int(client::Client&)>& run,
                Breaks breaks) {
  const auto client = connect(connection, breaks);
  return client ? run(**client) : complain_of_connection(client.error(), format);
}

// An address that makes no sense is a mistake in the command line, and no coordinator's word.
int complain_of_connection(const Error& error, Format format) {
  if (error.code != Errc::invalid_request) return complain(error, format);
  complain(error);
  return kExitUsage;
}

}  // namespace baton::cli
