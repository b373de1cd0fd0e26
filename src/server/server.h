// The server: sockets, sessions and the authority, on one thread.
//
//   sockets ready -> sessions read and begin commands -> one turn of the authority -> replies are written
//
// So whatever came in together is decided together, leaves with one flush, and is answered together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/options.h"
#include "server/limits.h"
#include "server/supervisor.h"
#include "wire/tls.h"

namespace baton::server {

struct Address {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any that is free
};

struct ServerOptions {
  std::string directory;
  CoordinatorOptions coordinator;
  std::string tokens;                 // file, see access.h; empty: everyone who can connect may do everything
  std::optional<wire::TlsFiles> tls;  // for both protocols; with a `ca` clients need certificates
  std::string audit;                  // file of what operators did, see audit.h; empty: nobody wants to know
  ServerLimits limits;
  Address listen;  // for the Redis protocol
  std::optional<Address> http;
  Supervision supervision;  // none: nobody asks how we are
};

class Server {
 public:
  // Recovers, and listens; nobody is served before run().
  static Result<std::unique_ptr<Server>> open(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const Address& address() const;  // with the port it got
  const std::optional<Address>& http_address() const;
  const RecoverySummary& recovery() const;
  // Serves until SIGINT or SIGTERM, or until stop(); a second signal ends the process at once.
  Status run();
  void stop();  // from any thread
  // Tokens and certificates are read again on SIGHUP, and the audit file goes on in a new one if it was
  // renamed; what cannot be read leaves the old ones in place.

 private:
  class Sockets;
  explicit Server(std::unique_ptr<Sockets> sockets);
  std::unique_ptr<Sockets> sockets_;
};

}  // namespace baton::server
