#include "floor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <unordered_map>
#include <utility>
#include <vector>

#include "wire/resp.h"

namespace baton::bench {
namespace {

constexpr std::size_t kLogBytes = std::size_t{512} << 20;
constexpr std::size_t kBlock = 4096;
// As long as the reply of a server that names the task and the log entry.
constexpr std::string_view kReply =
    "*6\r\n$3\r\nlsn\r\n:1000000\r\n$4\r\ntask\r\n$15\r\nced7a9a-1000000\r\n$7\r\nexisted\r\n:0\r\n";

struct Client {
  wire::RespParser parser{{}};
  std::string input;
  std::string output;
};

int listen_on(std::uint16_t port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address{
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) ::_exit(1);
  ::listen(listener, 1024);
  return listener;
}

}  // namespace

void run_floor(std::uint16_t port, const std::string& log_path) {
  const int log = ::open(log_path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
  const std::vector<char> zeros(1 << 20);
  for (std::size_t at = 0; at < kLogBytes; at += zeros.size())
    if (::pwrite(log, zeros.data(), zeros.size(), static_cast<off_t>(at)) < 0) ::_exit(1);
  ::fsync(log);
  std::size_t log_at = 0;

  const int epoll = ::epoll_create1(0);
  const int listener = listen_on(port);
  epoll_event listening{.events = EPOLLIN, .data = {.fd = listener}};
  ::epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &listening);
  std::unordered_map<int, Client> clients;
  std::string batch;
  std::vector<int> heard;
  static char buffer[256 << 10];
  for (;;) {
    epoll_event events[256];
    const int count = ::epoll_wait(epoll, events, 256, -1);
    batch.clear();
    heard.clear();
    for (int at = 0; at < count; ++at) {
      const int socket = events[at].data.fd;
      if (socket == listener) {
        const int accepted = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
        const int on = 1;
        ::setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        epoll_event reading{.events = EPOLLIN, .data = {.fd = accepted}};
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, accepted, &reading);
        clients[accepted];
        continue;
      }
      Client& client = clients[socket];
      const ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
      if (got <= 0) {
        ::close(socket);
        clients.erase(socket);
        continue;
      }
      client.input.append(buffer, static_cast<std::size_t>(got));
      batch.append(buffer, static_cast<std::size_t>(got));
      std::size_t done = 0;
      while (client.parser.parse(std::string_view(client.input).substr(done)) ==
             wire::RespParser::Found::command) {
        done += client.parser.consumed();
        client.output += kReply;
      }
      client.input.erase(0, done);
      heard.push_back(socket);
    }
    if (!batch.empty()) {
      batch.resize((batch.size() + kBlock - 1) / kBlock * kBlock);
      if (log_at + batch.size() > kLogBytes) log_at = 0;
      if (::pwrite(log, batch.data(), batch.size(), static_cast<off_t>(log_at)) < 0) ::_exit(1);
      log_at += batch.size();
      ::fdatasync(log);
    }
    for (const int socket : heard) {
      std::string& output = clients[socket].output;
      const ssize_t sent = ::send(socket, output.data(), output.size(), MSG_NOSIGNAL);
      if (sent > 0) output.erase(0, static_cast<std::size_t>(sent));
    }
  }
}

}  // namespace baton::bench
