#include "wire/tls.h"

#include <fcntl.h>
#include <openssl/buffer.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/room.h"

namespace baton::wire {
namespace {

// What OpenSSL has to say, and forgets.
std::string reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* text = ERR_reason_error_string(code);
  return text != nullptr ? text : "no reason given";
}

std::unexpected<Error> wrong(const std::string& path, const std::string& what) {
  return failure(Errc::invalid_request, path + ": " + what);
}

// OpenSSL does not tell a file that is missing from one that makes no sense.
Status check_readable(const std::string& path, const char* what) {
  if (path.contains("-----BEGIN"))  // a message is no place for a key
    return failure(Errc::invalid_request,
                   std::string("the name of a file is wanted, not the ") + what + " itself");
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file >= 0) {
    ::close(file);
    return {};
  }
  const int error = errno;
  const std::string why = std::strerror(error);
  if (error == EACCES)
    return wrong(path, why + "; whoever runs this program has to be allowed to read the " + what);
  return wrong(path, why + "; name the file with the " + what);
}

bool is_mismatch(unsigned long error) {
  return ERR_GET_LIB(error) == ERR_LIB_X509 && (ERR_GET_REASON(error) == X509_R_KEY_VALUES_MISMATCH ||
                                                ERR_GET_REASON(error) == X509_R_KEY_TYPE_MISMATCH);
}

// 2026-11-15 17:40:00 UTC
std::string text_of(const ASN1_TIME* time) {
  std::tm at{};
  char text[32] = "";
  if (ASN1_TIME_to_tm(time, &at) == 1) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &at);
  return text;
}

// What to do about a certificate of the other side that was not accepted.
std::string_view advice(long verified) {
  switch (verified) {
    case X509_V_ERR_CERT_HAS_EXPIRED: return "; it has to be renewed";
    case X509_V_ERR_CERT_NOT_YET_VALID: return "; is the clock of this machine right?";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return "; it is for another host than the one that was called";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return "; whoever signed it has to be among those who are trusted (the ca)";
    default: return "";
  }
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
  // A memory BIO takes everything, and keeps the room for it; so it gets a record at a time.
  constexpr std::size_t kPiece = 16 << 10;
  std::size_t sent = 0;
  bool is_taken = true;
  while (is_taken && sent < plain.size()) {
    const std::size_t bytes = std::min(kPiece, plain.size() - sent);
    std::size_t taken = 0;
    is_taken = SSL_write_ex(ssl_.get(), plain.data() + sent, bytes, &taken) == 1;
    sent += taken;
    collect();
  }
  plain.erase(0, sent);
}

void TlsFilter::give_back_room(std::size_t kept_bytes) {
  baton::give_back_room(output_, kept_bytes);
  for (bio_st* bio : {in_, out_}) {
    BUF_MEM* memory = nullptr;
    BIO_get_mem_ptr(bio, &memory);
    if (memory->length == 0 && memory->max > kept_bytes) BIO_set_mem_buf(bio, BUF_MEM_new(), BIO_CLOSE);
  }
}

void TlsFilter::finish() {
  ERR_clear_error();
  if (is_ready()) SSL_shutdown(ssl_.get());  // a second time it does nothing
  collect();
}

bool TlsFilter::is_ready() const { return SSL_is_init_finished(ssl_.get()) != 0; }

std::string TlsFilter::peer_name() const {
  const X509* certificate = SSL_get0_peer_certificate(ssl_.get());
  if (certificate == nullptr || SSL_get_verify_result(ssl_.get()) != X509_V_OK) return {};
  char name[256] = {};
  const int length =
      X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
  if (length <= 0) return {};
  return {name, static_cast<std::size_t>(length)};  // with any zero in it: that is nobody's name
}

std::string TlsFilter::complaint() const {
  const long verified = SSL_get_verify_result(ssl_.get());
  std::string why = reason();
  if (verified == X509_V_OK) return why;
  const std::string whose = SSL_is_server(ssl_.get()) != 0 ? "client" : "coordinator";
  return "the " + whose + "'s certificate is not accepted: " + X509_verify_cert_error_string(verified) +
         std::string(advice(verified));
}

void TlsFilter::collect() {
  char* bytes = nullptr;
  const long count = BIO_get_mem_data(out_, &bytes);
  if (count > 0) output_.append(bytes, static_cast<std::size_t>(count));
  (void)BIO_reset(out_);
}

Status TlsContext::use_certificate(const TlsFiles& files) const {
  if (files.certificate.empty())
    return wrong(files.key.empty() ? files.ca : files.key,
                 "the certificate is missing; name the file with it");
  if (auto readable = check_readable(files.certificate, "certificate"); !readable) return readable;
  if (files.key.empty()) return wrong(files.certificate, "its key is missing; name the file with it");
  if (auto readable = check_readable(files.key, "key"); !readable) return readable;
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context_.get(), files.certificate.c_str()) != 1)
    return wrong(files.certificate, "there is no certificate in PEM form in it (" + reason() +
                                        "); one begins with -----BEGIN CERTIFICATE-----");
  // A key of the same kind that does not fit is refused as it is read, another kind when they are compared.
  const bool is_read = SSL_CTX_use_PrivateKey_file(context_.get(), files.key.c_str(), SSL_FILETYPE_PEM) == 1;
  if (!is_read && !is_mismatch(ERR_peek_error()))
    return wrong(files.key, "there is no private key in PEM form in it (" + reason() +
                                "); one begins with -----BEGIN PRIVATE KEY-----");
  if (!is_read || SSL_CTX_check_private_key(context_.get()) != 1)
    return wrong(files.key, "it is not the key of the certificate in " + files.certificate);
  const ASN1_TIME* end = X509_get0_notAfter(SSL_CTX_get0_certificate(context_.get()));
  if (X509_cmp_current_time(end) < 0)
    return wrong(files.certificate,
                 "the certificate expired on " + text_of(end) + ", and nobody would accept it; renew it");
  return {};
}

Status TlsContext::trust(const std::string& ca) const {
  if (auto readable = check_readable(ca, "certificates of those who are trusted"); !readable) return readable;
  ERR_clear_error();
  if (SSL_CTX_load_verify_locations(context_.get(), ca.c_str(), nullptr) != 1)
    return wrong(ca, "there are no certificates in PEM form in it (" + reason() +
                         "); one begins with -----BEGIN CERTIFICATE-----");
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
  const unsigned char kOurs[] = "baton";  // without it, nobody with a certificate could resume a session
  SSL_CTX_set_session_id_context(raw, kOurs, sizeof kOurs);
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
  if (files.certificate.empty() && files.key.empty()) return made;
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
