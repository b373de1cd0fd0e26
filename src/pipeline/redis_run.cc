#include "pipeline/redis_run.h"

#include <algorithm>
#include <charconv>

#include "pipeline/redis_scripts.h"

namespace baton::pipeline {

std::int64_t number_in(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

RedisRun::RedisRun(const RedisCoordinatorOptions& given) : options(given) {
  for (const char* part :
       {"run", "modules", "waiting", "leases", "feed", "wake", "bell", "workers", "assignments", "results"}) {
    keys_.push_back("baton:{" + options.run + "}:" + part);
  }
}

Result<RedisRun::Words> RedisRun::call(const std::string& script, const Words& arguments,
                                       const std::stop_token& stop) {
  if (stop.stop_requested()) return failure(Errc::closed, "stopped");
  Words command = {"EVAL", redis_scripts::kCommon + script, std::to_string(keys_.size())};
  command.insert(command.end(), keys_.begin(), keys_.end());
  command.push_back(std::to_string(options.lease.ms));
  command.insert(command.end(), arguments.begin(), arguments.end());
  return lines_.say(command, stop);
}

void RedisRun::opened_by(const std::string& session) {
  const std::lock_guard lock(mutex_);
  session_ = session;
}

Result<RedisRun::Words> RedisRun::call_as_master(const char* script, const Words& arguments,
                                                 const std::stop_token& stop) {
  Words all = arguments;
  {
    const std::lock_guard lock(mutex_);
    all.insert(all.end(), {session_, std::to_string(steps_)});
  }
  auto answer =
      call(std::string(redis_scripts::kMasterBegins) + script + redis_scripts::kMasterEnds, all, stop);
  if (!answer) return answer;
  if (answer->front() == "taken over")
    return failure(Errc::conflict, "another master has taken over run " + options.run);
  if (answer->front() == "forgotten") {
    return failure(Errc::corrupt,
                   "Redis has forgotten some of run " + options.run +
                       " that it had acknowledged: it came back as it was before, or was emptied. A Redis at "
                       "which runs meet wants 'appendonly yes'");
  }
  const std::lock_guard lock(mutex_);
  steps_ = std::max(steps_, number_in(answer->back()));
  answer->pop_back();
  return answer;
}

Status RedisRun::wait_at(std::size_t key, const std::stop_token& stop) {
  auto answer = lines_.say({"BLPOP", keys_[key], "0.2"}, stop);
  return answer ? Status{} : Status(std::unexpected(answer.error()));
}

Status RedisRun::push(const std::string& text, const std::stop_token& stop) {
  constexpr char kPush[] =
      "redis.call('RPUSH', KEYS[1], ARGV[1]) redis.call('LTRIM', KEYS[1], -1000, -1) "
      "redis.call('EXPIRE', KEYS[1], 86400) return {'ok'}";
  auto answer = lines_.say({"EVAL", kPush, "1", said_key(), text}, stop);
  return answer ? Status{} : Status(std::unexpected(answer.error()));
}

Result<RedisRun::Words> RedisRun::pop(const std::stop_token& stop) {
  return lines_.say({"LPOP", said_key(), "100"}, stop);
}

}  // namespace baton::pipeline
