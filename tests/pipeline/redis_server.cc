#include "tests/pipeline/redis_server.h"

#include <csignal>

#include "base/check.h"

namespace baton::pipeline {

RedisServer::RedisServer() { start(); }
RedisServer::~RedisServer() = default;

void RedisServer::start() {
  child_ = std::make_unique<crash::Child>(crash::ChildOptions{
      .command = {"/usr/bin/redis-server", "--port", "0", "--unixsocket", path(), "--dir", directory_.path(),
                  "--save", "", "--appendonly", "yes", "--appendfsync", "always"}});
  bool is_ready = false;
  child_->listen(crash::after_ms(30'000), [&](const std::string& line) {
    is_ready = line.find("Ready to accept connections") != std::string::npos ||
               line.find("ready to accept connections") != std::string::npos;
    return !is_ready;
  });
  BATON_CHECK(is_ready);
}

void RedisServer::restart() {
  child_->signal(SIGKILL);
  child_->wait(crash::after_ms(10'000));
  start();
}

}  // namespace baton::pipeline
