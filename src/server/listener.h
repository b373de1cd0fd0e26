// A port that is listened on: hands over every connection somebody opens.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "base/time.h"
#include "server/poller.h"
#include "server/server.h"

namespace baton::server {

class Listener {
 public:
  Listener(Poller& poller, std::function<void(Descriptor)> opened)
      : poller_(poller), opened_(std::move(opened)) {}
  ~Listener() { close(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Fills in the port if any free one will do. Nobody is handed over before accept_waiting().
  // `option` is what names the address on a command line.
  Status open(Address& address, const char* option);
  void close();

  // Hands over those who wait to be let in, so many of them at most. To be called in every turn.
  static constexpr int kAtOnce = 256;
  void accept_waiting(Instant now);
  bool has_more() const { return someone_waits_ && !pause_until_; }

 private:
  Poller& poller_;
  const std::function<void(Descriptor)> opened_;
  Descriptor socket_;
  bool someone_waits_ = false;
  std::optional<Instant> pause_until_;
};

std::string peer_of(const Descriptor& socket);  // its address, without the port

// Whoever can reach a port may use it, unless a token or a certificate is asked for: an address that other
// machines can reach is refused without.
Status check_exposure(const ServerOptions& options);

}  // namespace baton::server
