#include "checkpoint/s3_signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cctype>

#include "wire/sha256.h"

namespace baton::checkpoint {
namespace {

std::string keyed(std::string_view key, std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &length);
  return {reinterpret_cast<const char*>(digest), length};
}

std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string sha256(std::string_view text) {
  wire::Sha256 sum;
  sum.add(text);
  return sum.hex();
}

}  // namespace

std::string escaped(std::string_view text, bool keep_slashes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_plain =
        std::isalnum(byte) != 0 || letter == '-' || letter == '.' || letter == '_' || letter == '~';
    if (is_plain || (keep_slashes && letter == '/')) {
      out += letter;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

std::string query_text(const std::map<std::string, std::string>& query) {
  std::string text;
  for (const auto& [name, value] : query)
    text += (text.empty() ? "" : "&") + escaped(name, false) + "=" + escaped(value, false);
  return text;
}

void sign(S3Request& request, std::string_view body_sha256, const std::string& time,
          const S3Credentials& credentials) {
  request.headers["host"] = request.host;
  request.headers["x-amz-date"] = time;
  request.headers["x-amz-content-sha256"] = body_sha256;
  if (!credentials.session_token.empty()) request.headers["x-amz-security-token"] = credentials.session_token;
  std::string headers;
  std::string names;
  for (const auto& [name, value] : request.headers) {
    headers += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical = request.method + "\n" + escaped(request.path, true) + "\n" +
                                query_text(request.query) + "\n" + headers + "\n" + names + "\n" +
                                std::string(body_sha256);
  const std::string day = time.substr(0, 8);
  const std::string scope = day + "/" + credentials.region + "/s3/aws4_request";
  const std::string to_sign = "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + sha256(canonical);
  const std::string key = keyed(
      keyed(keyed(keyed("AWS4" + credentials.secret_key, day), credentials.region), "s3"), "aws4_request");
  request.headers["authorization"] = "AWS4-HMAC-SHA256 Credential=" + credentials.access_key + "/" + scope +
                                     ",SignedHeaders=" + names + ",Signature=" + hex(keyed(key, to_sign));
}

}  // namespace baton::checkpoint
