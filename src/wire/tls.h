// TLS as a filter between the bytes of a socket and what is said. It knows no socket.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct ssl_st;
struct ssl_ctx_st;
struct bio_st;

namespace baton::wire {

class TlsFilter {
 public:
  // Takes what came from the socket, adds what it says to `plain`. CLOSED: the other side has ended the
  // conversation; PERMISSION_DENIED: it is not who it should be, or does not let us in. After an error only
  // output() may be sent.
  Status receive(std::string_view cipher, std::string& plain);
  // Takes all there is to say, once the handshake is over.
  void send(std::string& plain);
  // Nothing more will be said.
  void finish();
  std::string& output() { return output_; }  // for the socket
  bool is_ready() const;                     // the handshake is over
  std::string peer_name() const;             // common name of the other side's certificate, if it showed one
  // What nothing is in: of each buffer all but so much.
  void give_back_room(std::size_t kept_bytes);

 private:
  friend class TlsContext;
  explicit TlsFilter(ssl_ctx_st* context);

  std::string complaint() const;
  void collect();

  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  std::unique_ptr<ssl_st, Free> ssl_;
  bio_st* in_;  // both owned by `ssl_`
  bio_st* out_;
  std::string output_;
};

// In PEM form.
struct TlsFiles {
  std::string certificate;  // ours, with the chain behind it
  std::string key;
  std::string ca;  // who may have signed the other side's
};

// Certificates as they were when they were read; a filter keeps what it began with. Used by one thread at a
// time.
class TlsContext {
 public:
  // Without a `ca` clients show no certificate.
  static Result<std::unique_ptr<TlsContext>> for_server(const TlsFiles& files);
  // Without a `ca` those are trusted whom the system trusts. A certificate of ours is for servers that ask.
  static Result<std::unique_ptr<TlsContext>> for_client(const TlsFiles& files);

  std::unique_ptr<TlsFilter> accept() const;
  // Begins to shake hands with `host`, whose name has to be in its certificate.
  std::unique_ptr<TlsFilter> connect(const std::string& host) const;

 private:
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  Status use_certificate(const TlsFiles& files) const;
  Status trust(const std::string& ca) const;

  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

}  // namespace baton::wire
