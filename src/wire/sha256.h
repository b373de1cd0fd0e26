// SHA-256 of bytes that come in pieces.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace baton::wire {

inline constexpr std::size_t kSha256Letters = 64;

class Sha256 {
 public:
  Sha256();

  void add(std::string_view bytes);
  std::string hex();  // of all that was added; it begins anew then

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

// Whether it is written as hex() writes one.
bool is_sha256(std::string_view text);

}  // namespace baton::wire
