#include "server/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace baton::server {
namespace {

struct Free {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(X509* certificate) const { X509_free(certificate); }
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
  explicit Filter(SSL_CTX* context) : ssl_(SSL_new(context)) {
    SSL_set_accept_state(ssl_.get());
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl_.get(), in_, out_);  // which owns both
  }

  Status receive(std::string_view cipher, std::string& plain) override {
    BIO_write(in_, cipher.data(), static_cast<int>(cipher.size()));
    ERR_clear_error();
    char bytes[16 << 10];
    for (;;) {
      const int count = SSL_read(ssl_.get(), bytes, sizeof bytes);  // shakes hands first
      if (count > 0) {
        plain.append(bytes, static_cast<std::size_t>(count));
        continue;
      }
      const int error = SSL_get_error(ssl_.get(), count);
      collect();
      if (error == SSL_ERROR_WANT_READ) return {};
      if (error == SSL_ERROR_ZERO_RETURN)
        return failure(Errc::closed, "the other side has ended the conversation");
      return failure(Errc::permission_denied, "TLS: " + reason());
    }
  }

  void send(std::string& plain) override {
    if (plain.empty() || !is_ready()) return;
    ERR_clear_error();
    // A memory BIO takes everything.
    if (SSL_write(ssl_.get(), plain.data(), static_cast<int>(plain.size())) > 0) plain.clear();
    collect();
  }

  std::string& output() override { return output_; }
  bool is_ready() const override { return SSL_is_init_finished(ssl_.get()) != 0; }

  std::string client_name() const override {
    const std::unique_ptr<X509, Free> certificate(SSL_get1_peer_certificate(ssl_.get()));
    char name[256] = {};
    if (certificate && SSL_get_verify_result(ssl_.get()) == X509_V_OK)
      X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name, sizeof name);
    return name;
  }

 private:
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
  std::unique_ptr<TlsFilter> begin() override { return std::make_unique<Filter>(context_.get()); }

 private:
  Context context_;
};

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::load(const TlsFiles& files) {
  Context context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* raw = context.get();
  const auto wrong = [](const std::string& path, const char* what) {
    return failure(Errc::invalid_request, path + ": " + what + ": " + reason());
  };
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);  // an idle connection costs little
  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1)
    return wrong(files.certificate, "not a certificate in PEM form that can be read");
  if (SSL_CTX_use_PrivateKey_file(raw, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return wrong(files.key, "not a key in PEM form that can be read");
  if (SSL_CTX_check_private_key(raw) != 1) return wrong(files.key, "not the key of the certificate");
  if (!files.client_ca.empty()) {
    if (SSL_CTX_load_verify_locations(raw, files.client_ca.c_str(), nullptr) != 1)
      return wrong(files.client_ca, "no certificates in PEM form that can be read");
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    SSL_CTX_set_client_CA_list(raw, SSL_load_client_CA_file(files.client_ca.c_str()));
  }
  return std::unique_ptr<TlsContext>(std::make_unique<LoadedContext>(std::move(context)));
}

}  // namespace baton::server
