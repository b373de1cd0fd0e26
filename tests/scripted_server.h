// A server that answers each command with whatever bytes a test wants.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace baton {

class ScriptedServer {
 public:
  // Called from a thread per connection.
  using Script = std::function<std::string(const std::vector<std::string>& words)>;

  explicit ScriptedServer(Script script);
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void accept();
  void serve(int socket);

  const Script script_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  bool stops_ = false;
  std::list<int> sockets_;
  std::list<std::thread> threads_;  // the acceptor's own
  std::thread acceptor_;
};

}  // namespace baton
