#include "pipeline/redis_lines.h"

#include <hiredis/hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/pause.h"
#include "process/quiet_pipe.h"

namespace baton::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

struct Discard {
  void operator()(redisReply* reply) const { ::freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, Discard>;

timeval time_of(Duration duration) {
  return {.tv_sec = duration.ms / 1000, .tv_usec = static_cast<suseconds_t>(duration.ms % 1000 * 1000)};
}

std::unexpected<Error> refusal(const std::string& text) {
  if (text.starts_with("LOADING") || text.starts_with("BUSY"))
    return failure(Errc::unavailable, "Redis: " + text);
  if (text.starts_with("OOM")) return failure(Errc::exhausted, "Redis: " + text);
  if (text.starts_with("NOAUTH") || text.starts_with("WRONGPASS"))
    return failure(Errc::permission_denied, "Redis: " + text + " (redis://:PASSWORD@HOST:PORT gives one)");
  if (text.starts_with("UNKNOWN_COMMAND") || text.starts_with("ERR unknown command"))
    return failure(Errc::unsupported_version,
                   "whoever listens there is no Redis; a baton server is named without redis:// (it says: " +
                       text + ")");
  if (text.starts_with("NOPERM")) return failure(Errc::permission_denied, "Redis: " + text);
  return failure(Errc::io_failed, "Redis: " + text);
}

}  // namespace

void RedisLines::Hangup::operator()(redisContext* context) const { ::redisFree(context); }

Result<RedisLines::Words> RedisLines::say(const Words& command, const std::stop_token& stop) {
  const auto began = Clock::now();
  for (Duration delay = milliseconds(50);; delay = std::min(delay + delay, seconds(2))) {
    auto answer = say_once(command);
    if (answer || answer.error().code != Errc::unavailable) return answer;
    {
      const std::lock_guard lock(mutex_);
      idle_.clear();  // whatever broke this one broke them all
      if (!was_there_ || Clock::now() - began > std::chrono::milliseconds(options_.away_max.ms))
        return answer;
    }
    if (pause(delay, stop)) return answer;
  }
}

Result<RedisLines::Words> RedisLines::say_once(const Words& command) {
  auto line = take_line();
  if (!line) return std::unexpected(line.error());
  auto answer = say_on(**line, command);
  if (answer || answer.error().code != Errc::unavailable) {
    const std::lock_guard lock(mutex_);
    was_there_ = true;
    idle_.push_back(std::move(*line));
  }
  return answer;
}

Result<RedisLines::Words> RedisLines::say_on(redisContext& line, const Words& command) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string& word : command) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  const process::QuietPipe quiet;
  const Reply reply(static_cast<redisReply*>(
      ::redisCommandArgv(&line, static_cast<int>(texts.size()), texts.data(), lengths.data())));
  if (!reply) return failure(Errc::unavailable, std::string("the connection to Redis broke: ") + line.errstr);
  if (reply->type == REDIS_REPLY_ERROR) return refusal({reply->str, reply->len});
  Words words;
  if (reply->type == REDIS_REPLY_STATUS) words.emplace_back(reply->str, reply->len);
  for (std::size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; ++i) {
    words.emplace_back(reply->element[i]->str, reply->element[i]->len);
  }
  return words;
}

Result<RedisLines::Line> RedisLines::take_line() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      Line line = std::move(idle_.back());
      idle_.pop_back();
      return line;
    }
  }
  const timeval patience = time_of(options_.connect_timeout);
  const bool is_path = options_.host.starts_with('/');
  Line line(is_path ? ::redisConnectUnixWithTimeout(options_.host.c_str(), patience)
                    : ::redisConnectWithTimeout(options_.host.c_str(), options_.port, patience));
  if (!line || line->err != 0) {
    return failure(Errc::unavailable, "no connection to Redis at " + options_.host +
                                          (is_path ? "" : ":" + std::to_string(options_.port)) +
                                          (line ? std::string(": ") + line->errstr : ""));
  }
  ::redisSetTimeout(line.get(), time_of(seconds(10)));
  // Something short: to who is not let in, Redis says so only then.
  auto let_in = say_on(*line, options_.password.empty() ? Words{"PING"} : Words{"AUTH", options_.password});
  if (!let_in) return std::unexpected(let_in.error());
  return line;
}

}  // namespace baton::pipeline
