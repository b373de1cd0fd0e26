#include "client/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "client/client.h"

namespace baton::client {
namespace {

struct Free {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using Context = std::unique_ptr<SSL_CTX, Free>;

// What OpenSSL has to say, and forgets.
std::string reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* text = ERR_reason_error_string(code);
  return text != nullptr ? text : "no reason given";
}

class Filter final : public TlsFilter {
 public:
  Filter(SSL_CTX* context, const std::string& host) : ssl_(SSL_new(context)) {
    SSL_set_connect_state(ssl_.get());
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_.get(), in_, out_);  // which owns both
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) != 1) {
      SSL_set1_host(ssl_.get(), host.c_str());
      SSL_set_tlsext_host_name(ssl_.get(), host.c_str());
    }
    SSL_do_handshake(ssl_.get());
    collect();
  }

  Status receive(std::string_view cipher, std::string& plain) override {
    BIO_write(in_, cipher.data(), static_cast<int>(cipher.size()));
    ERR_clear_error();
    char bytes[16 << 10];
    for (;;) {
      const int count = SSL_read(ssl_.get(), bytes, sizeof bytes);  // goes on with the handshake first
      if (count > 0) {
        plain.append(bytes, static_cast<std::size_t>(count));
        continue;
      }
      const int error = SSL_get_error(ssl_.get(), count);
      collect();
      if (error == SSL_ERROR_WANT_READ) return {};
      if (error == SSL_ERROR_ZERO_RETURN)
        return failure(Errc::closed, "the coordinator closed the connection");
      return failure(Errc::permission_denied, "TLS: " + complaint());
    }
  }

  void send(std::string& plain) override {
    if (plain.empty() || SSL_is_init_finished(ssl_.get()) == 0) return;
    ERR_clear_error();
    // A memory BIO takes everything.
    if (SSL_write(ssl_.get(), plain.data(), static_cast<int>(plain.size())) > 0) plain.clear();
    collect();
  }

  std::string& output() override { return output_; }

 private:
  std::string complaint() const {
    const long verified = SSL_get_verify_result(ssl_.get());
    std::string why = reason();
    if (verified == X509_V_OK) return why;
    return std::string("the coordinator's certificate is not accepted: ") +
           X509_verify_cert_error_string(verified);
  }
  void collect() {
    char* bytes = nullptr;
    const long count = BIO_get_mem_data(out_, &bytes);
    if (count > 0) output_.append(bytes, static_cast<std::size_t>(count));
    (void)BIO_reset(out_);
  }

  std::unique_ptr<SSL, Free> ssl_;
  BIO* in_;
  BIO* out_;
  std::string output_;
};

class LoadedContext final : public TlsContext {
 public:
  explicit LoadedContext(Context context) : context_(std::move(context)) {}
  std::unique_ptr<TlsFilter> begin(const std::string& host) override {
    return std::make_unique<Filter>(context_.get(), host);
  }

 private:
  Context context_;
};

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::load(const TlsOptions& options) {
  Context context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* raw = context.get();
  const auto wrong = [](const std::string& path, const char* what) {
    return failure(Errc::invalid_request, path + ": " + what + ": " + reason());
  };
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  if (options.ca.empty()) {
    SSL_CTX_set_default_verify_paths(raw);
  } else if (SSL_CTX_load_verify_locations(raw, options.ca.c_str(), nullptr) != 1) {
    return wrong(options.ca, "no certificates in PEM form that can be read");
  }
  if (!options.certificate.empty()) {
    if (SSL_CTX_use_certificate_chain_file(raw, options.certificate.c_str()) != 1)
      return wrong(options.certificate, "not a certificate in PEM form that can be read");
    if (SSL_CTX_use_PrivateKey_file(raw, options.key.c_str(), SSL_FILETYPE_PEM) != 1)
      return wrong(options.key, "not a key in PEM form that can be read");
    if (SSL_CTX_check_private_key(raw) != 1) return wrong(options.key, "not the key of the certificate");
  }
  return std::unique_ptr<TlsContext>(std::make_unique<LoadedContext>(std::move(context)));
}

}  // namespace baton::client
