// For tests: a server on real sockets within the test's process, and somebody who talks to it byte by byte.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/descriptor.h"
#include "server/server.h"
#include "tests/backstage.h"
#include "tests/temporary_directory.h"

namespace baton::server {

// A server on free ports, on a thread of its own.
class Running {
 public:
  explicit Running(ServerOptions options = {}) {
    options.directory = directory.path() + "/data";
    options.coordinator.log.segment_bytes = std::uint64_t{4} << 20;
    options.coordinator.on_note = [](const std::string&) {};
    options.http.emplace();
    server_ = Server::open(std::move(options)).value();
    thread_ = std::thread([this] { EXPECT_TRUE(server_->run()); });
  }
  ~Running() {
    server_->stop();
    thread_.join();
  }
  void stop() const { server_->stop(); }
  std::uint16_t port() const { return server_->address().port; }
  std::uint16_t http_port() const { return server_->http_address()->port; }

  const TemporaryDirectory directory;

 private:
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

class Peer {
 public:
  explicit Peer(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    EXPECT_EQ(::connect(socket_.number(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void send(std::string_view text) {
    EXPECT_EQ(::send(socket_.number(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  bool tries_to_send(std::string_view text) {
    return ::send(socket_.number(), text.data(), text.size(), MSG_NOSIGNAL) > 0;
  }
  // As much as the other side takes without reading any of it; how much that was.
  std::size_t send_what_it_takes(std::string_view text, std::size_t times) {
    ::fcntl(socket_.number(), F_SETFL, O_NONBLOCK);
    std::size_t sent = 0;
    for (std::size_t count = 0; count < times; ++count) {
      pollfd ready{socket_.number(), POLLOUT, 0};
      if (::poll(&ready, 1, 1000) == 0) break;
      const ssize_t more = ::send(socket_.number(), text.data(), text.size(), MSG_NOSIGNAL);
      if (more > 0) sent += static_cast<std::size_t>(more);
    }
    return sent;
  }
  // Whether the other side ends it, without having been read from.
  bool is_cut_off(Duration within = seconds(30)) {
    pollfd ends{socket_.number(), 0, 0};
    return ::poll(&ends, 1, static_cast<int>(within.ms)) == 1;
  }
  void say_no_more() { ::shutdown(socket_.number(), SHUT_WR); }
  // Until this has come.
  std::string hear(std::string_view end) {
    std::string heard;
    for (char letter; !heard.ends_with(end) && ::recv(socket_.number(), &letter, 1, 0) == 1;) heard += letter;
    return heard;
  }
  // All there is until the other side ends it.
  std::string hear_all() {
    std::string heard;
    char part[4096];
    for (ssize_t count; (count = ::recv(socket_.number(), part, sizeof part, 0)) > 0;)
      heard.append(part, static_cast<std::size_t>(count));
    return heard;
  }
  std::string ask(std::string_view line) {
    send(std::string(line) + "\r\nPING mark\r\n");
    return hear("$4\r\nmark\r\n");
  }

 private:
  Descriptor socket_;
};

inline std::string post(std::string_view verb, std::string_view body, std::string_view headers = "") {
  return fmt::format("POST /v1/{} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n{}", verb,
                     headers, body.size(), body);
}

// The value behind a name, in a reply of version 2.
inline std::string value_of(const std::string& reply, const std::string& name) {
  std::string flat = reply;
  for (std::size_t at; (at = flat.find("\r\n")) != std::string::npos;) flat.replace(at, 2, " ");
  return member(flat, name);
}

}  // namespace baton::server
