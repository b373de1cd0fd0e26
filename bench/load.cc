#include "load.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>

namespace baton::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Slot {
  std::size_t step = 0;
  std::string held;
  Clock::time_point sent;
};

struct Connection {
  int socket = -1;
  std::string input;
  std::string output;
  std::vector<Slot> slots;
  std::deque<std::size_t> in_flight;  // slots, in the order of their replies
};

class Run {
 public:
  Run(const Peer& peer, const Load& load) : peer_(peer), load_(load), payload_(200, 'p') {
    epoll_ = ::epoll_create1(0);
    connections_.resize(load.connections);
    for (std::size_t at = 0; at < connections_.size(); ++at) {
      Connection& connection = connections_[at];
      connection.socket = connect_to(peer.port());
      connection.slots.resize(load.depth);
      epoll_event event{.events = EPOLLIN, .data = {.u64 = at}};
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.socket, &event);
    }
  }
  ~Run() {
    for (const Connection& connection : connections_) ::close(connection.socket);
    ::close(epoll_);
  }

  Measured measure() {
    const auto begin = Clock::now();
    const auto end =
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(load_.seconds));
    for (Connection& connection : connections_) {
      for (std::size_t slot = 0; slot < connection.slots.size(); ++slot) send(connection, slot);
      write(connection);
    }
    while (Clock::now() < end) {
      epoll_event events[256];
      const int count = ::epoll_wait(epoll_, events, 256, 1000);
      for (int at = 0; at < count; ++at) receive(connections_[events[at].data.u64]);
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    Measured measured{.tasks_per_s = static_cast<double>(ended_) / seconds, .failures = failures_};
    if (!latencies_us_.empty()) {
      const auto middle = latencies_us_.begin() + static_cast<std::ptrdiff_t>(latencies_us_.size() / 2);
      std::ranges::nth_element(latencies_us_, middle);
      measured.p50_us = *middle;
    }
    return measured;
  }

 private:
  void send(Connection& connection, std::size_t at) {
    Slot& slot = connection.slots[at];
    peer_.put(connection.output, load_.life[slot.step], slot.held, payload_);
    connection.in_flight.push_back(at);
    if (load_.depth == 1) slot.sent = Clock::now();
  }

  void write(Connection& connection) {
    while (!connection.output.empty()) {
      const ssize_t count =
          ::send(connection.socket, connection.output.data(), connection.output.size(), MSG_NOSIGNAL);
      if (count < 0) std::perror("bench: send"), std::exit(1);
      connection.output.erase(0, static_cast<std::size_t>(count));
    }
  }

  void receive(Connection& connection) {
    char bytes[256 << 10];
    const ssize_t count = ::recv(connection.socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN)) {
      std::fprintf(stderr, "bench: %s closed a connection\n", peer_.name().c_str());
      std::exit(1);
    }
    if (count < 0) return;
    connection.input.append(bytes, static_cast<std::size_t>(count));
    std::size_t done = 0;
    while (!connection.in_flight.empty()) {
      const std::size_t at = connection.in_flight.front();
      Slot& slot = connection.slots[at];
      Reply reply = peer_.take(std::string_view(connection.input).substr(done), load_.life[slot.step]);
      if (reply.length == 0) break;
      done += reply.length;
      connection.in_flight.pop_front();
      if (load_.depth == 1)
        latencies_us_.push_back(std::chrono::duration<double, std::micro>(Clock::now() - slot.sent).count());
      advance(slot, std::move(reply));
      send(connection, at);
    }
    connection.input.erase(0, done);
    write(connection);
  }

  void advance(Slot& slot, Reply reply) {
    failures_ += reply.failed;
    if (reply.empty) return;  // again
    const bool fused = load_.life[slot.step] == Step::complete_and_lease;
    if (!reply.held.empty()) slot.held = std::move(reply.held);
    if (fused) {
      ++ended_;  // and it holds the next one
    } else if (++slot.step == load_.life.size()) {
      ++ended_;
      slot.step = 0;
      slot.held.clear();
    }
  }

  const Peer& peer_;
  const Load load_;
  const std::string payload_;
  int epoll_ = -1;
  std::vector<Connection> connections_;
  std::uint64_t ended_ = 0;
  std::uint64_t failures_ = 0;
  std::vector<double> latencies_us_;
};

}  // namespace

Measured run_load(const Peer& peer, const Load& load) { return Run(peer, load).measure(); }

void submit_backlog(const Peer& peer, std::size_t tasks) {
  const int socket = connect_to(peer.port());
  const std::string payload(200, 'p');
  std::string input;
  for (std::size_t sent = 0, answered = 0; answered < tasks;) {
    std::string out;
    for (; sent < tasks && sent - answered < 1000; ++sent) peer.put(out, Step::submit, {}, payload);
    for (std::size_t at = 0; at < out.size();) {
      const ssize_t count = ::send(socket, out.data() + at, out.size() - at, MSG_NOSIGNAL);
      if (count < 0) std::perror("bench: send"), std::exit(1);
      at += static_cast<std::size_t>(count);
    }
    char bytes[64 << 10];
    const ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
    if (count <= 0) std::perror("bench: recv"), std::exit(1);
    input.append(bytes, static_cast<std::size_t>(count));
    std::size_t done = 0;
    for (Reply reply; (reply = peer.take(std::string_view(input).substr(done), Step::submit)).length > 0;) {
      done += reply.length;
      ++answered;
    }
    input.erase(0, done);
  }
  ::close(socket);
}

}  // namespace baton::bench
