// How long a barrier of processes takes: at baton, at a bare star of epoll, and with the usual recipe on
// Redis, one after the other in each round.
//
//   bench_barrier [ROUNDS] [BARRIERS] [PROCESSES]
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/peers.h"
#include "checkpoint/server_collective.h"

namespace baton::bench {
namespace {

using Clock = std::chrono::steady_clock;

// What a rank does `count` times, and says how long each took, in microseconds.
using Barrier = std::function<void(int number)>;
using Joining = std::function<Barrier(unsigned rank)>;

void say(const std::string& problem) {
  fmt::print(stderr, "bench_barrier: {}\n", problem);
  _exit(1);
}

void read_all(int from, char* into, std::size_t bytes) {
  for (std::size_t got = 0; got < bytes;) {
    const ssize_t now = read(from, into + got, bytes - got);
    if (now <= 0) say("a connection ended");
    got += static_cast<std::size_t>(now);
  }
}

// Each rank is a process; what the lowest one measured comes back through a pipe.
std::vector<double> measure(unsigned processes, int count, const Joining& join) {
  int out[2];
  if (pipe(out) != 0) say("no pipe");
  std::vector<pid_t> children;
  for (unsigned rank = 0; rank < processes; ++rank) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    close(out[0]);
    const Barrier barrier = join(rank);
    std::vector<double> took;
    for (int i = 0; i < count; ++i) {
      const auto began = Clock::now();
      barrier(i);
      took.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
    }
    if (rank == 0) (void)!write(out[1], took.data(), took.size() * sizeof(double));
    _exit(0);
  }
  close(out[1]);
  std::vector<double> took(static_cast<std::size_t>(count));
  read_all(out[0], reinterpret_cast<char*>(took.data()), took.size() * sizeof(double));
  close(out[0]);
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  took.erase(took.begin(), took.begin() + count / 10);  // until everybody is there
  return took;
}

// The least there can be: one byte from each, and one to each when all have come.
[[noreturn]] void run_star(int listener, unsigned processes) {
  const int poll = epoll_create1(0);
  for (unsigned i = 0; i < processes; ++i) {
    const int socket = accept(listener, nullptr, nullptr);
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{.events = EPOLLIN, .data = {.fd = socket}};
    epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event);
  }
  std::vector<int> came;
  for (;;) {
    epoll_event events[64];
    const int count = epoll_wait(poll, events, 64, -1);
    for (int i = 0; i < count; ++i) {
      char byte = 0;
      if (read(events[i].data.fd, &byte, 1) <= 0) _exit(0);
      came.push_back(events[i].data.fd);
    }
    if (came.size() < processes) continue;
    for (const int socket : came) (void)!write(socket, "", 1);
    came.clear();
  }
}

std::vector<double> at_star(unsigned processes, int count) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t length = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listener, 64) != 0)
    say("no port for the star");
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  const pid_t star = fork();
  if (star == 0) run_star(listener, processes);
  close(listener);
  const auto took = measure(processes, count, [&](unsigned) -> Barrier {
    const int socket = connect_to(ntohs(address.sin_port));
    return [socket](int) {
      char byte = 0;
      (void)!write(socket, "", 1);
      read_all(socket, &byte, 1);
    };
  });
  waitpid(star, nullptr, 0);
  return took;
}

// INCR, and the last one wakes the others, who wait with BLPOP.
std::vector<double> at_redis(std::uint16_t port, unsigned processes, int count) {
  return measure(processes, count, [=](unsigned rank) -> Barrier {
    const int socket = connect_to(port);
    const auto ask = [socket](const std::string& command) {
      (void)!write(socket, command.data(), command.size());
      char reply[512];
      const ssize_t got = read(socket, reply, sizeof reply);
      return std::string(reply, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    };
    return [=](int number) {
      const std::string came = ask(fmt::format("INCR came-{}\r\n", number));
      if (came == fmt::format(":{}\r\n", processes)) {
        std::string wake;
        for (unsigned other = 0; other < processes; ++other)
          wake += fmt::format("RPUSH go-{}-{} 1\r\n", number, other);
        (void)!write(socket, wake.data(), wake.size());
        std::string replies(4 * processes, ' ');
        read_all(socket, replies.data(), replies.size());
      }
      ask(fmt::format("BLPOP go-{}-{} 60\r\n", number, rank));
    };
  });
}

std::vector<double> at_baton(std::uint16_t port, unsigned processes, int count, int round) {
  return measure(processes, count, [=](unsigned rank) -> Barrier {
    auto joined = checkpoint::join_at_server({.client = {.addresses = {fmt::format("127.0.0.1:{}", port)}},
                                              .group = fmt::format("bench-{}", round),
                                              .rank = rank,
                                              .world_size = processes});
    if (!joined) say(joined.error().message);
    const std::shared_ptr<checkpoint::Collective> ranks = std::move(*joined);
    return [ranks](int) {
      if (auto passed = ranks->barrier({"barrier", seconds(60)}); !passed) say(passed.error().message);
    };
  });
}

double median(std::vector<double> of) {
  std::ranges::nth_element(of, of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2));
  return of[of.size() / 2];
}

int run(int rounds, int count, unsigned processes, const std::string& program) {
  char pattern[] = "/tmp/bench-barrier-XXXXXX";
  const std::string directory = mkdtemp(pattern);
  const auto baton = start_baton(program, directory + "/baton");
  const auto redis = start_redis(directory + "/redis");
  const auto tell_redis = [&](const std::string& what) {
    if (redis) (void)!std::system(fmt::format("redis-cli -p {} {} > /dev/null", redis->port(), what).c_str());
  };
  tell_redis("config set appendonly no");  // as baton, which writes nothing for a barrier
  std::map<std::string, std::vector<double>> medians;
  for (int round = 0; round < rounds; ++round) {
    medians["star"].push_back(median(at_star(processes, count)));
    medians["baton"].push_back(median(at_baton(baton->port(), processes, count, round)));
    if (redis) medians["redis"].push_back(median(at_redis(redis->port(), processes, count)));
    tell_redis("flushall");
  }
  fmt::print("a barrier of {} processes, p50 of {} in each of {} rounds\n", processes, count, rounds);
  const double star = median(medians["star"]);
  for (const auto& [name, all] : medians) {
    const auto [least, most] = std::ranges::minmax(all);
    fmt::print("  {:6} {:6.0f} us [{:.0f} to {:.0f}]  {:.2f} x the star\n", name, median(all), least, most,
               median(all) / star);
  }
  std::filesystem::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace baton::bench

int main(int argc, char** argv) {
  const auto number = [&](int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; };
  const std::string program = std::filesystem::path(argv[0]).parent_path() / "baton";
  return baton::bench::run(number(1, 5), number(2, 2000), static_cast<unsigned>(number(3, 8)), program);
}
