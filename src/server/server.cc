#include "server/server.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/check.h"
#include "engine/authority.h"
#include "server/access.h"
#include "server/blob_shelf.h"
#include "server/connections.h"
#include "server/desk.h"
#include "server/http_session.h"
#include "server/listener.h"
#include "server/metrics.h"
#include "server/openapi.h"
#include "server/poller.h"
#include "server/reader.h"
#include "server/resp_session.h"
#include "server/signals.h"

namespace baton::server {
namespace {

constexpr Duration kLastWords = seconds(2);  // to hear the last replies at a stop
constexpr Duration kStuckChecked = seconds(1);
constexpr Duration kStoodStill = seconds(5);  // longer than this between two of these
constexpr Duration kBlobsSwept = minutes(1);
// Bytes that are read while requests wait for room in the log, and have to be kept until there is some. With
// more, those who complete and extend would wait long behind those who submit.
constexpr std::size_t kReadBehindMax = std::size_t{4} << 20;
constexpr std::size_t kRequestsBehindMax = 16'384;  // likewise; a request is larger here than it came
// So long is read, and so long written, before it is the disk's turn and the watchdog's: also by those who
// ask for what needs no entry.
constexpr Duration kTurnMax = milliseconds(10);
constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
// Of those that the process may have: the log, snapshots and blobs must not be left without.
constexpr int kDescriptorsKept = 128;

bool leaves_descriptors(const Descriptor& socket) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  const auto most = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, INT_MAX));
  return socket.number() < most - std::min(kDescriptorsKept, most / 2);  // each gets the lowest that is free
}

}  // namespace

class Server::Sockets {
 public:
  explicit Sockets(ServerOptions options) : options_(std::move(options)), supervisor_(options_.supervision) {}
  ~Sockets() { let_go(); }

  Status open();
  Status run();
  void stop() {
    poller_.post([this] { begin_stop(); });
  }
  const Address& address() const { return options_.listen; }
  const std::optional<Address>& http_address() const { return options_.http; }
  const RecoverySummary& recovery() const { return authority_->recovery(); }

 private:
  enum class Protocol : std::uint8_t { resp, http };

  void opened(Descriptor socket, Protocol protocol);
  void turn_away(const Descriptor& socket, Protocol protocol) const;
  void begin_stop();
  void take_signals();
  void reload();
  bool take_turn();
  bool is_far_behind() const;
  void say_last_words();
  void let_go();
  void sweep_blobs();
  Status read_secrets();
  std::optional<Page> page(std::string_view path, const PrincipalRef& who) const;
  Page readiness() const;

  ServerOptions options_;
  Supervisor supervisor_;
  Poller poller_;
  Pages pages_ = [this](std::string_view path, const PrincipalRef& who) { return page(path, who); };
  std::unique_ptr<engine::Authority> authority_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<Audit> audit_;    // none: nobody wants to know
  std::unique_ptr<Syncer> syncer_;  // of the audit's
  std::unique_ptr<BlobShelf> blobs_;
  std::unique_ptr<Desk> desk_;
  Connections connections_{poller_};
  Listener resp_{poller_, [this](Descriptor socket) { opened(std::move(socket), Protocol::resp); }};
  Listener http_{poller_, [this](Descriptor socket) { opened(std::move(socket), Protocol::http); }};
  Access access_ = Access::open_to_all();
  std::unique_ptr<wire::TlsContext> tls_;
  std::unique_ptr<Signals> signals_;  // while it runs
  Instant stuck_checked_;
  std::size_t read_behind_ = 0;
  Instant blobs_swept_;
  bool stopping_ = false;
};

Status Server::Sockets::read_secrets() {
  std::unique_ptr<wire::TlsContext> tls;
  Access access = Access::open_to_all();
  if (options_.tls) {
    auto loaded = wire::TlsContext::for_server(*options_.tls);
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
    options_.coordinator.on_note = [](const std::string& note) {
      std::fputs(("baton: " + note + "\n").c_str(), stderr);  // whether or not anybody can hear it
    };
  if (auto safe = check_exposure(options_); !safe) return safe;
  if (auto read = read_secrets(); !read) return read;
  if (!options_.audit.empty()) {
    auto audit = Audit::open(options_.audit);
    if (!audit) return std::unexpected(audit.error());
    audit_ = std::move(*audit);
  }
  // Before anything is written for a server that cannot be reached. Whoever calls already waits.
  if (auto listens = resp_.open(options_.listen, "--listen"); !listens) return listens;
  if (options_.http) {
    if (auto listens = http_.open(*options_.http, "--http"); !listens) return listens;
  }
  options_.coordinator.engine.observer = [this](const core::Event& event, const core::Stamp& stamp) {
    if (desk_) desk_->recorded(event, stamp);
  };
  auto authority =
      engine::Authority::open(options_.directory, options_.coordinator, [this] { poller_.wake(); });
  if (!authority) return std::unexpected(authority.error());
  authority_ = std::move(*authority);
  reader_ = std::make_unique<Reader>([this](const core::BlobRef& blob) { return authority_->read(blob); },
                                     [this](std::function<void()> done) { poller_.post(std::move(done)); });
  desk_ = std::make_unique<Desk>(*authority_, *reader_, options_.limits);
  blobs_ = std::make_unique<BlobShelf>(options_.directory, options_.limits.blobs,
                                       [this](std::function<void()> done) { poller_.post(std::move(done)); });
  desk_->keep_blobs_on(*blobs_);
  if (options_.http) desk_->http_port = options_.http->port;
  if (audit_) {
    syncer_ = std::make_unique<Syncer>([this](std::function<void()> done) { poller_.post(std::move(done)); });
    desk_->audit_to(*audit_, *syncer_);
  }
  sweep_blobs();
  return {};
}

void Server::Sockets::sweep_blobs() {
  blobs_swept_ = desk_->now();
  blobs_->sweep([this](core::TaskId task) { return desk_->is_there(task); });
}

void Server::Sockets::opened(Descriptor socket, Protocol protocol) {
  Counters& counters = desk_->counters;
  const std::string from = peer_of(socket);
  auto place = desk_->addresses.enter(from, options_.limits.connections_per_address_max);
  if (!place || connections_.size() >= options_.limits.connections_max || !leaves_descriptors(socket)) {
    ++counters.connections_refused;
    return turn_away(socket, protocol);
  }
  ++counters.connections_total;
  const auto changed = [this, id = connections_.next_id()] { connections_.touch(id); };
  std::unique_ptr<Session> session;
  if (protocol == Protocol::resp) {
    session = std::make_unique<RespSession>(*desk_, access_, changed);
  } else {
    session = std::make_unique<HttpSession>(*desk_, access_, options_.limits.http, pages_, changed);
  }
  session->arrived(from, std::move(*place));
  auto& alike = protocol == Protocol::resp ? counters.connections_resp : counters.connections_http;
  connections_.add(std::make_unique<Connection>(std::move(socket), std::move(session),
                                                tls_ ? tls_->accept() : nullptr, desk_->now(), alike,
                                                counters.unsent_bytes));
}

// Whoever is not let in should know why; with TLS there is nobody to tell yet.
void Server::Sockets::turn_away(const Descriptor& socket, Protocol protocol) const {
  if (tls_) return;
  const std::string_view text = protocol == Protocol::resp
                                    ? "-EXHAUSTED too many connections; retry_after_ms=1000\r\n"
                                    : "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: "
                                      "0\r\nConnection: close\r\n\r\n";
  [[maybe_unused]] const ssize_t sent =
      ::send(socket.number(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Server::Sockets::begin_stop() {
  if (std::exchange(stopping_, true)) return;
  supervisor_.stopping();
  resp_.close();
  http_.close();
  desk_->stop();
  authority_->stop();
}

std::optional<Page> Server::Sockets::page(std::string_view path, const PrincipalRef& who) const {
  if (path == "/metrics") return metrics_page(*desk_, who);
  if (path == "/v1/openapi.json") return Page{.type = "application/json", .content = openapi_json()};
  if (path == "/healthz") return Page{.type = "text/plain", .content = "alive\n"};
  if (path == "/readyz") return readiness();
  return {};
}

// Whoever sends work elsewhere on 503 should do so when nothing can be done here. While the disk is only
// nearly full, workers go on.
Page Server::Sockets::readiness() const {
  const auto said = [](unsigned status, const char* content) {
    return Page{.type = "text/plain", .content = content, .status = status};
  };
  if (stopping_) return said(503, "stopping\n");
  switch (authority_->engine().admission()) {
    case engine::Admission::open: return said(200, "ready\n");
    case engine::Admission::no_submissions:
      return said(200, "ready; the disk is nearly full, and submissions are refused: free some space\n");
    case engine::Admission::closed: return said(503, "the disk is full: free some space\n");
  }
  BATON_CHECK(false && "unknown admission");
}

void Server::Sockets::take_signals() {
  while (const int number = signals_->next()) {
    number == SIGHUP ? reload() : begin_stop();
  }
}

void Server::Sockets::reload() {
  const auto note = [this](const std::string& text) { options_.coordinator.on_note("SIGHUP: " + text); };
  std::optional<std::uint64_t> line;
  if (audit_) {
    if (auto opened = audit_->reopen(); !opened)
      note("the audit goes on in the old file: " + opened.error().message);
    // Who can send a signal could do worse, so it is done even if it cannot be written down.
    const auto began = audit_->began({.who = "SIGHUP", .what = "reload"}, desk_->now());
    if (began)
      line = *began;
    else
      note(began.error().message);
  }
  const Status read = read_secrets();
  if (!read) {
    note("the tokens and certificates stay as they were: " + read.error().message);
  } else if (options_.tls || !options_.tokens.empty()) {
    note("the tokens and certificates were read again");
  }
  connections_.access_changed();
  if (!line) return;
  const std::string_view outcome = read ? "COMMITTED" : word(read.error().code);
  const auto ended = audit_->ended(*line, outcome, authority_->durable(), desk_->now());
  if (!ended) note(ended.error().message);
  syncer_->run(audit_->syncing(), [note](const Status& synced) {
    if (!synced) note(synced.error().message);
  });
}

Status Server::Sockets::run() {
  signals_ = std::make_unique<Signals>(kSignals);
  poller_.watch(signals_->descriptor(), Poller::For::reading, [this](Ready) { take_signals(); });
  supervisor_.ready("serves RESP on " + options_.listen.text());
  while (take_turn()) supervisor_.alive(desk_->now());
  say_last_words();
  let_go();
  poller_.forget(signals_->descriptor());
  signals_.reset();
  return authority_->close();
}

bool Server::Sockets::take_turn() {
  const bool may_go_on = connections_.has_touched() || resp_.has_more() || http_.has_more() ||
                         (connections_.has_readable() && !is_far_behind());
  const Duration wait =
      may_go_on ? Duration{} : std::min({authority_->wait(), desk_->wait(), supervisor_.wait(desk_->now())});
  const bool woken = poller_.wait(wait);
  authority_->begin_turn(!woken && wait > Duration{});
  if (!authority_->is_behind()) read_behind_ = 0;
  resp_.accept_waiting(desk_->now());
  http_.accept_waiting(desk_->now());
  authority_->look_at_clock();  // what waited may have taken its time
  const Instant began = desk_->now();
  // What is asked now is decided at once. Never by a time from before it came: after a pause in between, a
  // lease would seem to be held that has long expired.
  connections_.read_ready(
      [this](std::size_t bytes) {
        authority_->look_at_clock();
        if (authority_->is_behind()) read_behind_ += bytes;
      },
      [&] {
        const bool is_late = desk_->now() - began >= kTurnMax;
        return is_late || authority_->is_turn_long() || is_far_behind();
      });
  const bool goes_on = authority_->end_turn();
  desk_->tick();
  authority_->look_at_clock();  // likewise the disk
  const Instant decided = desk_->now();
  connections_.write_touched(decided, [&] {
    authority_->look_at_clock();
    return desk_->now() - decided >= kTurnMax;
  });
  if (const Duration since = desk_->now() - stuck_checked_; since >= kStuckChecked) {
    stuck_checked_ = desk_->now();
    if (since > kStoodStill) connections_.begin_anew(stuck_checked_);
    connections_.close_stuck(stuck_checked_, options_.limits.stuck_max);
    connections_.look_for_readable();
  }
  if (desk_->now() - blobs_swept_ >= kBlobsSwept) sweep_blobs();
  return goes_on;
}

bool Server::Sockets::is_far_behind() const {
  if (!authority_->is_behind()) return false;
  return read_behind_ >= kReadBehindMax || authority_->waiting() >= kRequestsBehindMax;
}

// Everything is decided and on disk; whoever waits for bytes, or reads slowly, may still hear his reply.
void Server::Sockets::say_last_words() {
  constexpr Duration kStep = milliseconds(10);
  for (Duration waited; waited < kLastWords; waited = waited + kStep) {
    const bool is_busy = reader_->is_busy() || (syncer_ && syncer_->is_busy()) || blobs_->disk().is_busy();
    if (!is_busy && !connections_.is_anyone_slow() && !connections_.has_touched()) return;
    poller_.wait(kStep);
    connections_.write_touched(desk_->now(), [] { return false; });
  }
}

// Sessions turn to the desk once more, the reader to the log.
void Server::Sockets::let_go() {
  connections_.clear();
  reader_.reset();
  syncer_.reset();
  blobs_.reset();
  desk_.reset();
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
