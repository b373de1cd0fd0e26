#include "tests/scripted_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "wire/resp.h"

namespace baton {

ScriptedServer::ScriptedServer(Script script) : script_(std::move(script)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  BATON_CHECK(listener_ >= 0);
  BATON_CHECK(::bind(listener_, reinterpret_cast<sockaddr*>(&address), length) == 0);
  BATON_CHECK(::listen(listener_, 64) == 0);
  BATON_CHECK(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  port_ = ::ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept(); });
}

ScriptedServer::~ScriptedServer() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  }
  ::shutdown(listener_, SHUT_RDWR);  // wakes the acceptor
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  ::close(listener_);
}

void ScriptedServer::accept() {
  for (;;) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const std::lock_guard lock(mutex_);
    if (stops_) {
      ::close(socket);
      return;
    }
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { serve(socket); });
  }
}

void ScriptedServer::serve(int socket) {
  wire::RespParser parser({});
  std::string input;
  char bytes[4096];
  for (ssize_t got = 0; (got = ::recv(socket, bytes, sizeof bytes, 0)) > 0;) {
    input.append(bytes, static_cast<std::size_t>(got));
    while (parser.parse(input) == wire::RespParser::Found::command) {
      const std::string reply = script_({parser.arguments().begin(), parser.arguments().end()});
      input.erase(0, parser.consumed());
      (void)!::send(socket, reply.data(), reply.size(), MSG_NOSIGNAL);
    }
  }
  const std::lock_guard lock(mutex_);
  sockets_.remove(socket);
  ::close(socket);
}

}  // namespace baton
