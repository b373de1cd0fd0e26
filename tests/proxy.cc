#include "tests/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace baton {
namespace {

constexpr std::size_t kHeldMax = std::size_t{4} << 20;  // taken and not passed on; beyond it nothing is read

std::int64_t clock_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  address.sin_port = ::htons(port);
  return address;
}

void close_with_reset(int socket) {
  const linger at_once{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(socket);
}

void send_at_once(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

// One direction of a link.
struct Proxy::Stream {
  struct Piece {
    std::int64_t leaves_at = 0;
    std::string bytes;
  };
  int from = -1;
  int to = -1;
  int which = 0;  // 0: requests, 1: replies
  std::deque<Piece> held;
  std::size_t held_bytes = 0;
  bool ended = false;   // nothing more comes in
  bool passed = false;  // … and the other side was told
  bool wants_to_write = false;
};

struct Proxy::Link {
  int client;
  int server;
  Stream up;
  Stream down;
};

Proxy::Proxy(std::uint16_t target) : target_(target) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  BATON_CHECK(listener_ >= 0);
  BATON_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0);
  BATON_CHECK(::listen(listener_, 1024) == 0);
  BATON_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  port_ = ::ntohs(address.sin_port);
  wakes_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  BATON_CHECK(wakes_ >= 0);
  thread_ = std::thread([this] { run(); });
}

Proxy::~Proxy() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  wake();
  thread_.join();
  for (Link& link : links_) {
    close_with_reset(link.client);
    close_with_reset(link.server);
  }
  ::close(listener_);
  ::close(wakes_);
}

void Proxy::wake() const {
  const std::uint64_t one = 1;
  BATON_CHECK(::write(wakes_, &one, sizeof one) == sizeof one);
}

void Proxy::set_target(std::uint16_t port) {
  const std::lock_guard lock(mutex_);
  target_ = port;
}

void Proxy::set(const ProxyFaults& faults) {
  {
    const std::lock_guard lock(mutex_);
    faults_ = faults;
  }
  wake();
}

void Proxy::reset() {
  {
    const std::lock_guard lock(mutex_);
    resets_ = true;
  }
  wake();
}

std::uint64_t Proxy::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}
std::uint64_t Proxy::request_bytes() const {
  const std::lock_guard lock(mutex_);
  return passed_[0];
}
std::uint64_t Proxy::reply_bytes() const {
  const std::lock_guard lock(mutex_);
  return passed_[1];
}
std::uint64_t Proxy::cuts() const {
  const std::lock_guard lock(mutex_);
  return cuts_;
}

void Proxy::accept() {
  for (;;) {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (client < 0) return;
    std::uint16_t target = 0;
    bool refuses = false;
    {
      const std::lock_guard lock(mutex_);
      target = target_;
      refuses = faults_.refuses;
      ++connections_;
    }
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(target);
    // On this machine it is accepted or refused at once.
    if (refuses || ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      close_with_reset(client);
      close_with_reset(server);
      continue;
    }
    send_at_once(client);
    send_at_once(server);
    links_.push_back({.client = client,
                      .server = server,
                      .up = {.from = client, .to = server, .which = 0},
                      .down = {.from = server, .to = client, .which = 1}});
  }
}

bool Proxy::move(Stream& stream, std::int64_t now) {
  ProxyFaults faults;
  {
    const std::lock_guard lock(mutex_);
    faults = faults_;
  }
  char bytes[16384];
  while (!stream.ended && stream.held_bytes < kHeldMax) {
    const ssize_t got = ::recv(stream.from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got < 0) return false;
    stream.ended = got == 0;
    std::size_t piece = faults.piece_bytes > 0 ? faults.piece_bytes : sizeof bytes;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got); at += piece) {
      const std::size_t length = std::min(piece, static_cast<std::size_t>(got) - at);
      stream.held.push_back({now + faults.delay_ms, std::string(bytes + at, length)});
      stream.held_bytes += length;
    }
  }
  stream.wants_to_write = false;
  const bool holds = stream.which == 0 ? faults.holds_requests : faults.holds_replies;
  while (!holds && !stream.held.empty() && stream.held.front().leaves_at <= now) {
    std::string& piece = stream.held.front().bytes;
    std::size_t length = piece.size();
    const std::lock_guard lock(mutex_);
    std::int64_t& cut = stream.which == 0 ? faults_.cut_requests_after : faults_.cut_replies_after;
    if (cut >= 0) length = std::min(length, static_cast<std::size_t>(cut));
    const ssize_t took =
        length == 0 ? 0 : ::send(stream.to, piece.data(), length, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (took < 0 && (errno == EAGAIN || errno == EINTR)) {
      stream.wants_to_write = true;
      break;
    }
    if (took < 0) return false;
    const auto count = static_cast<std::size_t>(took);
    passed_[stream.which] += count;
    stream.held_bytes -= count;
    piece.erase(0, count);
    if (piece.empty()) stream.held.pop_front();
    if (cut < 0) continue;
    cut -= took;
    if (cut > 0) continue;
    cut = -1;
    ++cuts_;
    resets_ = true;
    return true;
  }
  if (stream.ended && stream.held.empty() && !holds && !std::exchange(stream.passed, true))
    ::shutdown(stream.to, SHUT_WR);
  return true;
}

void Proxy::run() {
  for (;;) {
    bool resets = false;
    {
      const std::lock_guard lock(mutex_);
      if (stops_) return;
      resets = std::exchange(resets_, false);
    }
    const std::int64_t now = clock_ms();
    accept();
    std::int64_t until = now + 60'000;
    std::erase_if(links_, [&](Link& link) {
      const bool goes_on = !resets && move(link.up, now) && move(link.down, now);
      if (goes_on && !(link.up.passed && link.down.passed)) {
        for (const Stream* stream : {&link.up, &link.down}) {
          if (!stream->held.empty())
            until = std::min(until, std::max(stream->held.front().leaves_at, now + 1));
        }
        return false;
      }
      close_with_reset(link.client);
      close_with_reset(link.server);
      return true;
    });
    {
      const std::lock_guard lock(mutex_);
      if (resets_) continue;
    }
    std::vector<pollfd> watched = {{wakes_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Link& link : links_) {
      const auto watch = [&](const Stream& in, const Stream& out) {
        const int events =
            (!in.ended && in.held_bytes < kHeldMax ? POLLIN : 0) | (out.wants_to_write ? POLLOUT : 0);
        watched.push_back({events != 0 ? in.from : -1, static_cast<short>(events), 0});
      };
      watch(link.up, link.down);
      watch(link.down, link.up);
    }
    ::poll(watched.data(), watched.size(),
           static_cast<int>(std::clamp<std::int64_t>(until - now, 0, 60'000)));
    std::uint64_t count = 0;
    (void)!::read(wakes_, &count, sizeof count);
  }
}

}  // namespace baton
