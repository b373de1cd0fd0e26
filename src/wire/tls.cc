#include "wire/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace baton::wire {
namespace {

// What OpenSSL has to say, and forgets.
std::string reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* text = ERR_reason_error_string(code);
  return text != nullptr ? text : "no reason given";
}

std::unexpected<Error> wrong(const std::string& path, const char* what) {
  return failure(Errc::invalid_request, path + ": " + what + ": " + reason());
}

}  // namespace

void TlsFilter::Free::operator()(ssl_st* ssl) const { SSL_free(ssl); }
void TlsContext::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

TlsFilter::TlsFilter(ssl_ctx_st* context)
    : ssl_(SSL_new(context)), in_(BIO_new(BIO_s_mem())), out_(BIO_new(BIO_s_mem())) {
  SSL_set_bio(ssl_.get(), in_, out_);
}

Status TlsFilter::receive(std::string_view cipher, std::string& plain) {
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
      return failure(Errc::closed, "the other side has ended the conversation");
    return failure(Errc::permission_denied, "TLS: " + complaint());
  }
}

void TlsFilter::send(std::string& plain) {
  if (plain.empty() || !is_ready()) return;
  ERR_clear_error();
  // A memory BIO takes everything.
  if (SSL_write(ssl_.get(), plain.data(), static_cast<int>(plain.size())) > 0) plain.clear();
  collect();
}

bool TlsFilter::is_ready() const { return SSL_is_init_finished(ssl_.get()) != 0; }

std::string TlsFilter::peer_name() const {
  const X509* certificate = SSL_get0_peer_certificate(ssl_.get());
  char name[256] = {};
  if (certificate != nullptr && SSL_get_verify_result(ssl_.get()) == X509_V_OK)
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
  return name;
}

std::string TlsFilter::complaint() const {
  const long verified = SSL_get_verify_result(ssl_.get());
  std::string why = reason();
  if (verified == X509_V_OK) return why;
  const std::string whose = SSL_is_server(ssl_.get()) != 0 ? "client" : "coordinator";
  return "the " + whose + "'s certificate is not accepted: " + X509_verify_cert_error_string(verified);
}

void TlsFilter::collect() {
  char* bytes = nullptr;
  const long count = BIO_get_mem_data(out_, &bytes);
  if (count > 0) output_.append(bytes, static_cast<std::size_t>(count));
  (void)BIO_reset(out_);
}

Status TlsContext::use_certificate(const TlsFiles& files) const {
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context_.get(), files.certificate.c_str()) != 1)
    return wrong(files.certificate, "not a certificate in PEM form that can be read");
  if (SSL_CTX_use_PrivateKey_file(context_.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return wrong(files.key, "not a key in PEM form that can be read");
  if (SSL_CTX_check_private_key(context_.get()) != 1)
    return wrong(files.key, "not the key of the certificate");
  return {};
}

Status TlsContext::trust(const std::string& ca) const {
  ERR_clear_error();
  if (SSL_CTX_load_verify_locations(context_.get(), ca.c_str(), nullptr) != 1)
    return wrong(ca, "no certificates in PEM form that can be read");
  return {};
}

Result<std::unique_ptr<TlsContext>> TlsContext::for_server(const TlsFiles& files) {
  std::unique_ptr<TlsContext> made(new TlsContext(SSL_CTX_new(TLS_server_method())));
  SSL_CTX* raw = made->context_.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);  // an idle connection costs little
  if (auto used = made->use_certificate(files); !used) return std::unexpected(used.error());
  if (files.ca.empty()) return made;
  if (auto trusted = made->trust(files.ca); !trusted) return std::unexpected(trusted.error());
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_client_CA_list(raw, SSL_load_client_CA_file(files.ca.c_str()));
  return made;
}

Result<std::unique_ptr<TlsContext>> TlsContext::for_client(const TlsFiles& files) {
  std::unique_ptr<TlsContext> made(new TlsContext(SSL_CTX_new(TLS_client_method())));
  SSL_CTX* raw = made->context_.get();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  if (files.ca.empty()) {
    SSL_CTX_set_default_verify_paths(raw);
  } else if (auto trusted = made->trust(files.ca); !trusted) {
    return std::unexpected(trusted.error());
  }
  if (files.certificate.empty()) return made;
  if (auto used = made->use_certificate(files); !used) return std::unexpected(used.error());
  return made;
}

std::unique_ptr<TlsFilter> TlsContext::accept() const {
  std::unique_ptr<TlsFilter> filter(new TlsFilter(context_.get()));
  SSL_set_accept_state(filter->ssl_.get());
  return filter;
}

std::unique_ptr<TlsFilter> TlsContext::connect(const std::string& host) const {
  std::unique_ptr<TlsFilter> filter(new TlsFilter(context_.get()));
  SSL* ssl = filter->ssl_.get();
  SSL_set_connect_state(ssl);
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) != 1) {
    SSL_set1_host(ssl, host.c_str());
    SSL_set_tlsext_host_name(ssl, host.c_str());
  }
  SSL_do_handshake(ssl);
  filter->collect();
  return filter;
}

}  // namespace baton::wire
