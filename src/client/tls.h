// TLS for a line: a filter between the bytes of a socket and what is said. It knows no socket.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton::client {

struct TlsOptions;

class TlsFilter {
 public:
  virtual ~TlsFilter() = default;
  // Takes what came from the socket, adds what it says to `plain`. CLOSED: the other side has ended the
  // conversation; PERMISSION_DENIED: it is not who it should be, or does not let us in.
  virtual Status receive(std::string_view cipher, std::string& plain) = 0;
  // Takes all there is to say, if the handshake is over.
  virtual void send(std::string& plain) = 0;
  virtual std::string& output() = 0;  // for the socket
};

// Certificates as they were when they were read. Used by one thread at a time.
class TlsContext {
 public:
  static Result<std::unique_ptr<TlsContext>> load(const TlsOptions& options);
  virtual ~TlsContext() = default;
  // Begins to shake hands with `host`, whose name has to be in its certificate.
  virtual std::unique_ptr<TlsFilter> begin(const std::string& host) = 0;
};

}  // namespace baton::client
