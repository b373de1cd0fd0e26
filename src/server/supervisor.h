// What the service manager (systemd) is told: that we serve, that we are still alive, that we stop. It names
// a datagram socket in our environment; without one nobody asked, and nothing is said.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace baton::server {

struct Supervision {
  std::string socket;                // NOTIFY_SOCKET; '@' in front: a name without a file. Empty: nobody asks
  std::optional<Duration> watchdog;  // WATCHDOG_USEC: whoever is silent for longer is taken for dead
};
Supervision supervision_of_environment();

class Supervisor {
 public:
  explicit Supervisor(Supervision supervision);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  void ready(std::string_view status);  // a line for `systemctl status`
  void stopping();
  // To be called by the loop that has to be alive, at least as often as wait() says.
  void alive(Instant now);
  Duration wait(Instant now) const;

 private:
  void tell(std::string_view news) const;

  const Supervision supervision_;
  int socket_ = -1;
  Instant told_;
};

}  // namespace baton::server
