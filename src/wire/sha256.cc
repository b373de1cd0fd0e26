#include "wire/sha256.h"

#include <openssl/evp.h>

#include <algorithm>

#include "base/check.h"

namespace baton::wire {

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  BATON_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(std::string_view bytes) {
  BATON_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  BATON_CHECK(EVP_DigestFinal_ex(context_.get(), hash, &length) == 1);
  BATON_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    text += "0123456789abcdef"[hash[i] >> 4];
    text += "0123456789abcdef"[hash[i] & 15];
  }
  return text;
}

bool is_sha256(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == kSha256Letters && std::ranges::all_of(text, is_digit);
}

}  // namespace baton::wire
