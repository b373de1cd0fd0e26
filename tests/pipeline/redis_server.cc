#include "tests/pipeline/redis_server.h"

#include <csignal>
#include <utility>

#include "base/check.h"

namespace baton::pipeline {

RedisServer::RedisServer(std::vector<std::string> options) : options_(std::move(options)) { start(); }
RedisServer::~RedisServer() = default;

void RedisServer::start() {
  std::vector<std::string> command = {"/usr/bin/redis-server",
                                      "--bind",
                                      "127.0.0.1",
                                      "--port",
                                      std::to_string(port()),
                                      "--unixsocket",
                                      path(),
                                      "--dir",
                                      directory_.path(),
                                      "--save",
                                      "",
                                      "--appendonly",
                                      "yes",
                                      "--appendfsync",
                                      "always"};
  command.insert(command.end(), options_.begin(), options_.end());
  child_ = std::make_unique<crash::Child>(crash::ChildOptions{.command = std::move(command)});
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
