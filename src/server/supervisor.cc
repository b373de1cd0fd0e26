#include "server/supervisor.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace baton::server {
namespace {

constexpr Duration kForEver = seconds(3600);

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

Supervision supervision_of_environment() {
  Supervision supervision{.socket = variable("NOTIFY_SOCKET")};
  // The variables are inherited: a watchdog may be meant for the process that started us.
  const std::string process = variable("WATCHDOG_PID");
  const std::int64_t us = std::atoll(variable("WATCHDOG_USEC").c_str());
  if (us > 0 && (process.empty() || process == std::to_string(::getpid())))
    supervision.watchdog = milliseconds(std::max<std::int64_t>(us / 1000, 1));
  return supervision;
}

Supervisor::Supervisor(Supervision supervision) : supervision_(std::move(supervision)) {
  if (!supervision_.socket.empty()) socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

Supervisor::~Supervisor() {
  if (socket_ >= 0) ::close(socket_);
}

void Supervisor::tell(std::string_view news) const {
  sockaddr_un address{};
  const std::string& name = supervision_.socket;
  if (socket_ < 0 || name.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name.front() == '@') address.sun_path[0] = '\0';
  const std::size_t length = offsetof(sockaddr_un, sun_path) + name.size();
  // A manager that does not listen is no reason to stop serving; the loop must not wait for it either.
  (void)::sendto(socket_, news.data(), news.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                 reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length));
}

void Supervisor::ready(std::string_view status) { tell("READY=1\nSTATUS=" + std::string(status)); }
void Supervisor::stopping() { tell("STOPPING=1\nSTATUS=stopping, what was asked is being answered"); }

void Supervisor::alive(Instant now) {
  if (!supervision_.watchdog || wait(now) > Duration{}) return;
  told_ = now;
  tell("WATCHDOG=1");
}

Duration Supervisor::wait(Instant now) const {
  if (socket_ < 0 || !supervision_.watchdog) return kForEver;
  // Three times within the limit, so that one late turn does no harm.
  const Instant due = told_ + milliseconds(supervision_.watchdog->ms / 3);
  return std::max(due - now, Duration{});
}

}  // namespace baton::server
