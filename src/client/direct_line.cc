#include "client/direct_line.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "client/command.h"

namespace baton::client {
namespace {

constexpr std::int64_t kSleepMax = 60'000;

}  // namespace

DirectLine::DirectLine(const ClientOptions& options)
    : options_(line_options(options)),
      tells_{.settle =
                 [](Call& call, Result<wire::RespValue> reply) {
                   std::exchange(call.done, nullptr)(std::move(reply), call.sent_at);
                 },
             .pushed = [](const wire::RespValue&) {}} {
  if (options_) line_.emplace(*options_, tells_);
}

Result<wire::RespValue> DirectLine::ask_and_wait(const std::vector<std::string>& words, Duration wait,
                                                 Duration deadline) {
  const std::lock_guard lock(mutex_);
  if (!line_) return std::unexpected(options_.error());
  const Command command(words);
  auto owned = std::make_unique<Call>();
  Call& call = *owned;
  call.words = command.words();
  call.count = command.count();
  call.safety = Safety::repeatable;
  call.wait = wait;
  call.wait_until = now_ms() + wait.ms;
  call.deadline = call.wait_until + deadline.ms;
  const std::int64_t until = call.deadline;
  std::optional<Result<wire::RespValue>> reply;
  call.done = [&](Result<wire::RespValue> came, std::int64_t) { reply = std::move(came); };
  line_->add(std::move(owned));

  for (bool readable = false, writable = false;;) {
    const std::int64_t now = now_ms();
    line_->advance(readable, writable, now);
    if (reply) return std::move(*reply);
    if (now >= until) line_->give_up(out_of_time(call, line_->trouble()));
    if (reply) return std::move(*reply);
    const auto events = static_cast<short>(POLLIN | (line_->wants_to_write() ? POLLOUT : 0));
    pollfd watched{line_->socket(), events, 0};
    const std::int64_t sleep = std::min(until, line_->wakes_at()) - now;
    ::poll(&watched, 1, static_cast<int>(std::clamp<std::int64_t>(sleep, 0, kSleepMax)));
    readable = (watched.revents & (POLLIN | POLLHUP | POLLERR)) != 0;
    writable = (watched.revents & (POLLOUT | POLLHUP | POLLERR)) != 0;
  }
}

}  // namespace baton::client
