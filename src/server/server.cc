#include "server/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>

#include "engine/authority.h"
#include "server/access.h"
#include "server/desk.h"
#include "server/http_session.h"
#include "server/metrics.h"
#include "server/openapi.h"
#include "server/reader.h"
#include "server/resp_session.h"

namespace baton::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

constexpr std::size_t kReadBytes = std::size_t{64} << 10;

// Whoever can reach a port may use it, unless a token or a certificate is asked for.
Status check_exposure(const ServerOptions& options) {
  if (!options.tokens.empty() || (options.tls && !options.tls->client_ca.empty())) return {};
  for (const Address* address : {&options.listen, options.http ? &*options.http : &options.listen}) {
    ErrorCode error;
    const auto host = asio::ip::make_address(address->host, error);
    if (!error && !host.is_loopback())
      return failure(
          Errc::permission_denied,
          fmt::format("{}:{} can be reached from other machines, so give --tokens FILE (see `baton "
                      "token`) or --tls-client-ca FILE, or listen on 127.0.0.1",
                      address->host, address->port));
  }
  return {};
}

}  // namespace

class Server::Sockets {
 public:
  explicit Sockets(ServerOptions options)
      : options_(std::move(options)),
        acceptor_(io_),
        http_acceptor_(io_),
        signals_(io_),
        supervisor_(options_.supervision) {}
  ~Sockets() {
    connections_.clear();
    reader_.reset();
  }

  Status open();
  Status run();
  void stop() {
    asio::post(io_, [this] { begin_stop(); });
  }
  const Address& address() const { return options_.listen; }
  const std::optional<Address>& http_address() const { return options_.http; }
  const RecoverySummary& recovery() const { return authority_->recovery(); }

 private:
  struct Connection {
    Connection(tcp::socket opened, std::unique_ptr<Session> begun, std::uint64_t& alike)
        : socket(std::move(opened)), session(std::move(begun)), open(alike) {
      ++open;
    }
    ~Connection() { --open; }

    tcp::socket socket;
    std::unique_ptr<Session> session;
    std::unique_ptr<TlsFilter> tls;  // none: the session's bytes go as they are
    Instant stuck_since;             // when it last got on
    std::uint64_t& open;             // connections of this kind
    bool reading = false;            // waits to be readable
    bool writing = false;            // waits to be writable
    bool touched = false;            // is in touched_
    bool ended = false;              // the other side will send no more
    bool broken = false;             // nor hear anything
    bool more = false;               // it has sent what the session does not want yet
  };
  using Id = std::uint64_t;

  static Status listen(tcp::acceptor& acceptor, Address& address);
  void accept(tcp::acceptor& acceptor);
  void begin_stop();
  void wait_for_signal();
  void touch(Id id);
  void wait_to_read(Id id, Connection& connection);
  void read(Id id);
  Status take(Connection& connection, std::string_view bytes);
  std::string& outgoing(Connection& connection);
  void write_touched();
  void close_stuck();
  Status read_secrets();
  void write(Id id);
  void close(Id id);
  std::optional<Page> page(std::string_view path) const;

  ServerOptions options_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  tcp::acceptor http_acceptor_;
  Pages pages_ = [this](std::string_view path) { return page(path); };
  asio::signal_set signals_;
  Supervisor supervisor_;
  std::unique_ptr<engine::Authority> authority_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<Desk> desk_;
  Id last_id_ = 0;
  std::unordered_map<Id, std::unique_ptr<Connection>> connections_;
  std::vector<Id> touched_;  // their output or their appetite may have changed
  std::vector<char> buffer_ = std::vector<char>(kReadBytes);
  Access access_ = Access::open_to_all();
  std::unique_ptr<TlsContext> tls_;
  Instant stuck_checked_;
  bool stopping_ = false;
};

Status Server::Sockets::read_secrets() {
  std::unique_ptr<TlsContext> tls;
  Access access = Access::open_to_all();
  if (options_.tls) {
    auto loaded = TlsContext::load(*options_.tls);
    if (!loaded) return std::unexpected(loaded.error());
    tls = std::move(*loaded);
  }
  if (!options_.tokens.empty()) {
    auto read = Access::read_file(options_.tokens);
    if (!read) return std::unexpected(read.error());
    access = std::move(*read);
  }
  tls_ = std::move(tls);
  access_ = std::move(access);
  return {};
}

Status Server::Sockets::open() {
  if (!options_.coordinator.on_note)
    options_.coordinator.on_note = [](const std::string& note) { fmt::print(stderr, "baton: {}\n", note); };
  if (auto safe = check_exposure(options_); !safe) return safe;
  if (auto read = read_secrets(); !read) return read;
  options_.coordinator.engine.observer = [this](const core::Event& event, const core::Stamp&) {
    if (desk_) desk_->recorded(event);
  };
  auto authority =
      engine::Authority::open(options_.directory, options_.coordinator, [this] { asio::post(io_, [] {}); });
  if (!authority) return std::unexpected(authority.error());
  authority_ = std::move(*authority);
  reader_ =
      std::make_unique<Reader>([this](const core::BlobRef& blob) { return authority_->read(blob); },
                               [this](std::function<void()> done) { asio::post(io_, std::move(done)); });
  desk_ = std::make_unique<Desk>(*authority_, *reader_);
  if (auto listens = listen(acceptor_, options_.listen); !listens) return listens;
  return options_.http ? listen(http_acceptor_, *options_.http) : Status{};
}

Status Server::Sockets::listen(tcp::acceptor& acceptor, Address& address) {
  const std::string name = fmt::format("{}:{}", address.host, address.port);
  ErrorCode error;
  const auto host = asio::ip::make_address(address.host, error);
  if (error)
    return failure(Errc::invalid_request, name + ": not an address; give a number such as 127.0.0.1");
  const tcp::endpoint endpoint(host, address.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return failure(Errc::io_failed, fmt::format("cannot listen on {}: {}", name, error.message()));
  address.port = acceptor.local_endpoint().port();
  return {};
}

void Server::Sockets::accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([this, &acceptor](ErrorCode error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error || connections_.size() >= options_.limits.connections_max) {
      ++desk_->counters.connections_refused;
      return accept(acceptor);
    }
    ErrorCode ignored;
    socket.non_blocking(true, ignored);
    socket.set_option(tcp::no_delay(true), ignored);
    const Id id = ++last_id_;
    const auto changed = [this, id] { touch(id); };
    std::unique_ptr<Session> session;
    if (&acceptor == &acceptor_) {
      session = std::make_unique<RespSession>(*desk_, access_, wire::RespLimits{}, changed);
    } else {
      session = std::make_unique<HttpSession>(*desk_, access_, HttpLimits{}, pages_, changed);
    }
    auto& open =
        &acceptor == &acceptor_ ? desk_->counters.connections_resp : desk_->counters.connections_http;
    auto connection = std::make_unique<Connection>(std::move(socket), std::move(session), open);
    ++desk_->counters.connections_total;
    if (tls_) connection->tls = tls_->begin();
    connection->stuck_since = desk_->now();
    wait_to_read(id, *connection);
    connections_.emplace(id, std::move(connection));
    accept(acceptor);
  });
}

void Server::Sockets::wait_to_read(Id id, Connection& connection) {
  connection.reading = true;
  connection.socket.async_wait(tcp::socket::wait_read, [this, id](ErrorCode error) {
    if (!error) read(id);
  });
}

void Server::Sockets::touch(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end() || std::exchange(found->second->touched, true)) return;
  touched_.push_back(id);
}

void Server::Sockets::read(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  connection.reading = false;
  ErrorCode error;
  // A session that wants no more is only told when the other side has gone.
  const bool peeks = !connection.session->wants_more();
  const std::size_t count = connection.socket.receive(
      asio::buffer(buffer_.data(), peeks ? 1 : buffer_.size()), peeks ? tcp::socket::message_peek : 0, error);
  connection.more = peeks && count > 0;
  if (error && error != asio::error::would_block) {
    connection.ended = true;
    connection.broken = error != asio::error::eof;
  } else if (peeks) {
    // it stays where it is
  } else if (count > 0 && !take(connection, {buffer_.data(), count})) {
    connection.ended = true;
  }
  touch(id);
}

Status Server::Sockets::take(Connection& connection, std::string_view bytes) {
  if (!connection.tls) {
    connection.session->receive(bytes);
    return {};
  }
  const bool was_ready = connection.tls->is_ready();
  std::string plain;
  const Status taken = connection.tls->receive(bytes, plain);
  if (!was_ready && connection.tls->is_ready()) {
    if (const std::string name = connection.tls->client_name(); !name.empty())
      connection.session->certified(name);
  }
  if (!plain.empty()) connection.session->receive(plain);
  return taken;
}

std::string& Server::Sockets::outgoing(Connection& connection) {
  std::string& plain = connection.session->output();
  if (!connection.tls) return plain;
  connection.tls->send(plain);
  return connection.tls->output();
}

void Server::Sockets::close_stuck() {
  if (desk_->now() - stuck_checked_ < seconds(1)) return;
  stuck_checked_ = desk_->now();
  std::vector<Id> stuck;
  for (const auto& [id, connection] : connections_) {
    const bool shakes_hands = connection->tls && !connection->tls->is_ready();
    const bool stands = connection->writing || connection->session->is_halfway() || shakes_hands;
    if (!stands) {
      connection->stuck_since = stuck_checked_;
    } else if (stuck_checked_ - connection->stuck_since > options_.limits.stuck_max) {
      stuck.push_back(id);
    }
  }
  for (const Id id : stuck) close(id);
}

void Server::Sockets::write_touched() {
  for (const Id id : std::exchange(touched_, {})) write(id);
}

void Server::Sockets::write(Id id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  connection.touched = false;
  Session& session = *connection.session;
  session.resume();
  std::string& output = outgoing(connection);
  if (!output.empty() && !connection.writing) {
    ErrorCode error;
    const std::size_t count = connection.socket.write_some(asio::buffer(output), error);
    output.erase(0, count);
    if (count > 0) connection.stuck_since = desk_->now();
    if (error && error != asio::error::would_block) return close(id);
    if (!output.empty()) {
      connection.writing = true;
      connection.socket.async_wait(tcp::socket::wait_write, [this, id](ErrorCode failed) {
        const auto at = connections_.find(id);
        if (failed || at == connections_.end()) return;
        at->second->writing = false;
        touch(id);
      });
    }
  }
  // Who has said all he wants may still hear the replies; who waits for what may never come is taken for
  // gone.
  const bool over = (session.is_idle() || session.is_waiting()) && (connection.ended || session.is_closing());
  if (connection.broken || (over && output.empty())) return close(id);
  const bool wants = session.wants_more() || !connection.more;
  if (!connection.reading && !connection.ended && wants) wait_to_read(id, connection);
}

void Server::Sockets::close(Id id) { connections_.erase(id); }

void Server::Sockets::begin_stop() {
  if (std::exchange(stopping_, true)) _exit(130);
  supervisor_.stopping();
  ErrorCode ignored;
  acceptor_.close(ignored);
  http_acceptor_.close(ignored);
  authority_->stop();
}

std::optional<Page> Server::Sockets::page(std::string_view path) const {
  if (path == "/metrics")
    return Page{"text/plain; version=0.0.4", metrics_text(*authority_, desk_->counters)};
  if (path == "/v1/openapi.json") return Page{"application/json", openapi_json()};
  if (path == "/healthz") return Page{.type = "text/plain", .content = "alive\n", .open_to_all = true};
  if (path == "/readyz")
    return Page{.type = "text/plain",
                .content = stopping_ ? "stopping\n" : "ready\n",
                .status = stopping_ ? 503u : 200u,
                .open_to_all = true};
  return {};
}

void Server::Sockets::wait_for_signal() {
  signals_.async_wait([this](ErrorCode error, int number) {
    if (error) return;
    if (number != SIGHUP) {
      begin_stop();
    } else if (auto read = read_secrets(); !read) {
      options_.coordinator.on_note("SIGHUP: the tokens and certificates stay as they were: " +
                                   read.error().message);
    }
    wait_for_signal();
  });
}

Status Server::Sockets::run() {
  ErrorCode ignored;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signals_.add(number, ignored);
  wait_for_signal();
  accept(acceptor_);
  if (options_.http) accept(http_acceptor_);
  supervisor_.ready(fmt::format("serves RESP on {}:{}", options_.listen.host, options_.listen.port));
  for (;;) {
    const Duration wait = std::min({authority_->wait(), desk_->wait(), supervisor_.wait(desk_->now())});
    const std::size_t events = io_.run_one_for(std::chrono::milliseconds(wait.ms));
    io_.poll();
    if (!authority_->turn(events == 0 && wait > Duration{})) break;
    desk_->tick();
    write_touched();
    close_stuck();
    supervisor_.alive(desk_->now());
  }
  write_touched();
  connections_.clear();  // their sessions turn to the desk once more
  reader_.reset();       // and it reads from the authority's log
  desk_.reset();
  return authority_->close();
}

Server::Server(std::unique_ptr<Sockets> sockets) : sockets_(std::move(sockets)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::open(ServerOptions options) {
  auto sockets = std::make_unique<Sockets>(std::move(options));
  if (auto opened = sockets->open(); !opened) return std::unexpected(opened.error());
  return std::unique_ptr<Server>(new Server(std::move(sockets)));
}

const Address& Server::address() const { return sockets_->address(); }
const std::optional<Address>& Server::http_address() const { return sockets_->http_address(); }
const RecoverySummary& Server::recovery() const { return sockets_->recovery(); }
Status Server::run() { return sockets_->run(); }
void Server::stop() { sockets_->stop(); }

}  // namespace baton::server
