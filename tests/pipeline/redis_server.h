// A Redis server of the test's own, at a socket in a folder of its own, and at a port for those who stand
// between.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/crash/child.h"
#include "tests/free_port.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {

class RedisServer {
 public:
  explicit RedisServer(std::vector<std::string> options = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  std::string path() const { return directory_.path() + "/redis.sock"; }
  std::uint16_t port() const { return port_.number(); }
  void restart();  // it keeps what it held

 private:
  void start();

  const std::vector<std::string> options_;
  const FreePort port_;
  TemporaryDirectory directory_;
  std::unique_ptr<crash::Child> child_;
};

}  // namespace baton::pipeline
