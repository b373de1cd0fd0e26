// TLS as a filter between a socket's bytes and a session's: it knows no socket.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton::server {

struct TlsFiles {
  std::string certificate;  // PEM, with the chain behind it
  std::string key;          // PEM
  std::string client_ca;    // PEM; if given, clients have to show a certificate signed by it
};

class TlsFilter {
 public:
  virtual ~TlsFilter() = default;
  // Takes what came from the socket, adds what it says to `plain`. After an error only output() may be sent.
  virtual Status receive(std::string_view cipher, std::string& plain) = 0;
  // Takes what is to be sent, as much as there is once the handshake is over.
  virtual void send(std::string& plain) = 0;
  virtual std::string& output() = 0;            // for the socket
  virtual bool is_ready() const = 0;            // the handshake is over
  virtual std::string client_name() const = 0;  // common name of its certificate, if it had to show one
};

// Certificate and key as they were when they were read; connections keep what they began with.
class TlsContext {
 public:
  static Result<std::unique_ptr<TlsContext>> load(const TlsFiles& files);
  virtual ~TlsContext() = default;
  virtual std::unique_ptr<TlsFilter> begin() = 0;
};

}  // namespace baton::server
