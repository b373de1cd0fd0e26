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

}  // namespace

class Server::Sockets {
 public:
  explicit Sockets(ServerOptions options)
      : options_(std::move(options)), acceptor_(io_), http_acceptor_(io_), signals_(io_) {}
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
    std::uint64_t& open;   // connections of this kind
    bool reading = false;  // waits to be readable
    bool writing = false;  // waits to be writable
    bool touched = false;  // is in touched_
    bool ended = false;    // the other side will send no more
  };
  using Id = std::uint64_t;

  static Status listen(tcp::acceptor& acceptor, Address& address);
  void accept(tcp::acceptor& acceptor);
  void begin_stop();
  void touch(Id id);
  void wait_to_read(Id id, Connection& connection);
  void read(Id id);
  void write_touched();
  void write(Id id);
  void close(Id id);
  std::optional<Page> page(std::string_view path) const;

  ServerOptions options_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  tcp::acceptor http_acceptor_;
  Pages pages_ = [this](std::string_view path) { return page(path); };
  asio::signal_set signals_;
  std::unique_ptr<engine::Authority> authority_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<Desk> desk_;
  Id last_id_ = 0;
  std::unordered_map<Id, std::unique_ptr<Connection>> connections_;
  std::vector<Id> touched_;  // their output or their appetite may have changed
  std::vector<char> buffer_ = std::vector<char>(kReadBytes);
  bool stopping_ = false;
};

Status Server::Sockets::open() {
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
    if (error) return;
    ErrorCode ignored;
    socket.non_blocking(true, ignored);
    socket.set_option(tcp::no_delay(true), ignored);
    const Id id = ++last_id_;
    const auto changed = [this, id] { touch(id); };
    std::unique_ptr<Session> session;
    if (&acceptor == &acceptor_) {
      session = std::make_unique<RespSession>(*desk_, wire::RespLimits{}, changed);
    } else {
      session = std::make_unique<HttpSession>(*desk_, HttpLimits{}, pages_, changed);
    }
    auto& open =
        &acceptor == &acceptor_ ? desk_->counters.connections_resp : desk_->counters.connections_http;
    auto connection = std::make_unique<Connection>(std::move(socket), std::move(session), open);
    ++desk_->counters.connections_total;
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
  const std::size_t count = connection.socket.read_some(asio::buffer(buffer_), error);
  if (error && error != asio::error::would_block) {
    connection.ended = true;
  } else if (count > 0) {
    connection.session->receive({buffer_.data(), count});
  }
  touch(id);
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
  std::string& output = session.output();
  if (!output.empty() && !connection.writing) {
    ErrorCode error;
    const std::size_t count = connection.socket.write_some(asio::buffer(output), error);
    output.erase(0, count);
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
  const bool over = connection.ended || (session.is_closing() && session.is_idle());
  if (over && output.empty()) return close(id);
  if (!connection.reading && !connection.ended && session.wants_more()) wait_to_read(id, connection);
}

void Server::Sockets::close(Id id) { connections_.erase(id); }

void Server::Sockets::begin_stop() {
  if (std::exchange(stopping_, true)) _exit(130);
  ErrorCode ignored;
  acceptor_.close(ignored);
  http_acceptor_.close(ignored);
  authority_->stop();
  signals_.async_wait([](ErrorCode error, int) {
    if (!error) _exit(130);
  });
}

std::optional<Page> Server::Sockets::page(std::string_view path) const {
  if (path == "/metrics")
    return Page{"text/plain; version=0.0.4", metrics_text(*authority_, desk_->counters)};
  if (path == "/v1/openapi.json") return Page{"application/json", openapi_json()};
  if (path == "/healthz") return Page{"text/plain", "alive\n"};
  if (path == "/readyz")
    return stopping_ ? Page{"text/plain", "stopping\n", 503} : Page{"text/plain", "ready\n"};
  return {};
}

Status Server::Sockets::run() {
  ErrorCode ignored;
  signals_.add(SIGINT, ignored);
  signals_.add(SIGTERM, ignored);
  signals_.async_wait([this](ErrorCode error, int) {
    if (!error) begin_stop();
  });
  accept(acceptor_);
  if (options_.http) accept(http_acceptor_);
  for (;;) {
    const Duration wait = std::min(authority_->wait(), desk_->wait());
    const std::size_t events = io_.run_one_for(std::chrono::milliseconds(wait.ms));
    io_.poll();
    if (!authority_->turn(events == 0 && wait > Duration{})) break;
    desk_->tick();
    write_touched();
  }
  write_touched();
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
