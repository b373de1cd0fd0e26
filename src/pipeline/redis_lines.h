// Connections to a Redis server: as many as are in use at a time, made when they are needed.
#pragma once

#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/redis_coordinator.h"

struct redisContext;

namespace baton::pipeline {

class RedisLines {
 public:
  using Words = std::vector<std::string>;

  explicit RedisLines(const RedisCoordinatorOptions& options) : options_(options) {}
  RedisLines(const RedisLines&) = delete;
  RedisLines& operator=(const RedisLines&) = delete;

  // A command and its answer; one that is no list is a list of one, or of none. Where the connection breaks
  // it is said again, so it has to be one that may be.
  Result<Words> say(const Words& command, const std::stop_token& stop);

 private:
  struct Hangup {
    void operator()(redisContext* context) const;
  };
  using Line = std::unique_ptr<redisContext, Hangup>;

  Result<Words> say_once(const Words& command);
  Result<Line> take_line();
  static Result<Words> say_on(redisContext& line, const Words& command);

  const RedisCoordinatorOptions options_;
  std::mutex mutex_;
  std::vector<Line> idle_;
  bool was_there_ = false;
};

}  // namespace baton::pipeline
