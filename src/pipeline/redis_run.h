// A run at a Redis server: what the operations of a coordinator have in common there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "pipeline/redis_lines.h"

namespace baton::pipeline {

class RedisRun {
 public:
  using Words = RedisLines::Words;

  explicit RedisRun(const RedisCoordinatorOptions& options);
  RedisRun(const RedisRun&) = delete;
  RedisRun& operator=(const RedisRun&) = delete;

  // Runs a script. The first word of the answer says what it came to.
  Result<Words> call(const std::string& script, const Words& arguments, const std::stop_token& stop);
  // As the master that has opened the run. CONFLICT: it is another's now. CORRUPT: Redis has gone back to
  // before what it has acknowledged.
  Result<Words> call_as_master(const char* script, const Words& arguments, const std::stop_token& stop);
  void opened_by(const std::string& session);

  // Until somebody puts something into the list, or a while is over; and then it is worth looking again.
  Status wait_at(std::size_t key, const std::stop_token& stop);
  static constexpr std::size_t kWake = 5;  // for workers
  static constexpr std::size_t kBell = 6;  // for the master

  // What is said while modules run: the last thousand pieces that nobody has taken.
  Status push(const std::string& text, const std::stop_token& stop);
  Result<Words> pop(const std::stop_token& stop);

  const RedisCoordinatorOptions options;
  std::atomic<std::size_t> told = 0;  // of the feed

 private:
  std::string said_key() const { return "baton:{" + options.run + "}:said"; }

  Words keys_;
  RedisLines lines_{options};
  std::mutex mutex_;
  std::string session_;     // of the master that this is
  std::int64_t steps_ = 0;  // of masters of this run, as far as this one has heard
};

std::int64_t number_in(const std::string& text);  // 0, if there is none

}  // namespace baton::pipeline
