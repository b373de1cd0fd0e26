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
  explicit Sockets(ServerOptions options) : options_(std::move(options)), acceptor_(io_), signals_(io_) {}
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
  const RecoverySummary& recovery() const { return authority_->recovery(); }

 private:
  struct Connection {
    Connection(tcp::socket opened, Desk& desk, std::function<void()> changed)
        : socket(std::move(opened)), session(desk, {}, std::move(changed)) {}

    tcp::socket socket;
    RespSession session;
    bool reading = false;  // waits to be readable
    bool writing = false;  // waits to be writable
    bool touched = false;  // is in touched_
    bool ended = false;    // the other side will send no more
  };
  using Id = std::uint64_t;

  Status listen();
  void accept();
  void begin_stop();
  void touch(Id id);
  void wait_to_read(Id id, Connection& connection);
  void read(Id id);
  void write_touched();
  void write(Id id);
  void close(Id id);
  void turn();

  ServerOptions options_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
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
  return listen();
}

Status Server::Sockets::listen() {
  const std::string name = fmt::format("{}:{}", options_.listen.host, options_.listen.port);
  ErrorCode error;
  const auto host = asio::ip::make_address(options_.listen.host, error);
  if (error)
    return failure(Errc::invalid_request, name + ": not an address; give a number such as 127.0.0.1");
  const tcp::endpoint endpoint(host, options_.listen.port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) return failure(Errc::io_failed, fmt::format("cannot listen on {}: {}", name, error.message()));
  options_.listen.port = acceptor_.local_endpoint().port();
  return {};
}

void Server::Sockets::accept() {
  acceptor_.async_accept([this](ErrorCode error, tcp::socket socket) {
    if (error) return;
    ErrorCode ignored;
    socket.non_blocking(true, ignored);
    socket.set_option(tcp::no_delay(true), ignored);
    const Id id = ++last_id_;
    auto connection = std::make_unique<Connection>(std::move(socket), *desk_, [this, id] { touch(id); });
    wait_to_read(id, *connection);
    connections_.emplace(id, std::move(connection));
    accept();
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
    connection.session.receive({buffer_.data(), count});
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
  RespSession& session = connection.session;
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
  authority_->stop();
  signals_.async_wait([](ErrorCode error, int) {
    if (!error) _exit(130);
  });
}

Status Server::Sockets::run() {
  ErrorCode ignored;
  signals_.add(SIGINT, ignored);
  signals_.add(SIGTERM, ignored);
  signals_.async_wait([this](ErrorCode error, int) {
    if (!error) begin_stop();
  });
  accept();
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
const RecoverySummary& Server::recovery() const { return sockets_->recovery(); }
Status Server::run() { return sockets_->run(); }
void Server::stop() { sockets_->stop(); }

}  // namespace baton::server
