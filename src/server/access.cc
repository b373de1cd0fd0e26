#include "server/access.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fstream>
#include <iterator>
#include <sstream>

#include "base/check.h"
#include "core/names.h"
#include "wire/sha256.h"

namespace baton::server {
namespace {

constexpr Permission kAll[] = {Permission::submit, Permission::work, Permission::query, Permission::admin};
constexpr std::string_view kEverywhere = "*";

std::string hash_of(std::string_view token) {
  wire::Sha256 sum;
  sum.add(token);
  return sum.hex();
}

unsigned bit(Permission permission) { return 1u << static_cast<unsigned>(permission); }

// "submit,query" or "all"; 0 if it makes no sense.
unsigned parse_permissions(std::string_view text) {
  unsigned bits = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, end);
    unsigned found = 0;
    for (const Permission permission : kAll)
      if (word == name_of(permission) || word == "all") found |= bit(permission);
    if (found == 0) return 0;
    bits |= found;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return bits;
}

}  // namespace

std::string_view name_of(Permission permission) {
  switch (permission) {
    case Permission::submit: return "submit";
    case Permission::work: return "work";
    case Permission::query: return "query";
    case Permission::admin: return "admin";
  }
  BATON_CHECK(false && "unknown permission");
}

bool Principal::may(Permission permission, std::string_view ns) const {
  for (const std::string_view scope : {kEverywhere, ns}) {
    const auto found = allowed_.find(scope);
    if (found != allowed_.end() && (found->second & bit(permission)) != 0) return true;
  }
  return false;
}

Access Access::open_to_all() {
  auto everyone = std::make_shared<Principal>();
  everyone->name_ = "everyone";
  everyone->allowed_[std::string(kEverywhere)] = parse_permissions("all");
  Access access;
  access.everyone_ = std::move(everyone);
  return access;
}

Result<Access> Access::read(std::string_view text) {
  Access access;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    const auto wrong = [&](std::string_view what) {
      return failure(Errc::invalid_request, fmt::format("line {}: {}", number, what));
    };
    std::istringstream words(line.substr(0, line.find('#')));
    auto principal = std::make_shared<Principal>();
    std::string hash;
    if (!(words >> principal->name_)) continue;
    if (!core::is_name(principal->name_)) return wrong("a name is 1 to 128 graphic ASCII characters");
    if (!(words >> hash) || !wire::is_sha256(hash))
      return wrong(
          "behind the name comes the SHA-256 of the token, 64 hexadecimal digits; `baton token` makes one");
    principal->token_hash_ = hash;
    for (std::string grant; words >> grant;) {
      const std::size_t equals = std::min(grant.find('='), grant.size());
      const std::string ns = grant.substr(0, equals);
      const unsigned bits =
          equals < grant.size() ? parse_permissions(std::string_view(grant).substr(equals + 1)) : 0;
      if (!core::is_name(ns) || bits == 0)
        return wrong("'" + grant + "' is not NAMESPACE=submit,work,query,admin or NAMESPACE=all");
      principal->allowed_[ns] |= bits;
    }
    if (principal->allowed_.empty())
      return wrong("nothing is allowed to this name; add, for example, default=work");
    access.principals_.push_back(std::move(principal));
  }
  if (access.principals_.empty()) return failure(Errc::invalid_request, "it names nobody");
  return access;
}

Result<Access> Access::read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    return failure(Errc::not_found, fmt::format("{}: {}; it has to be a file of tokens that this program may "
                                                "read (`baton token` writes its lines)",
                                                path, std::strerror(errno)));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto access = read(text);
  if (!access) return failure(access.error().code, path + ": " + access.error().message);
  return access;
}

PrincipalRef Access::find(std::string_view name, std::string_view token) const {
  const std::string hash = hash_of(token);
  PrincipalRef found;
  for (const auto& principal : principals_) {
    const bool right = CRYPTO_memcmp(hash.data(), principal->token_hash_.data(), hash.size()) == 0;
    if (right && (name.empty() || name == principal->name_)) found = principal;
  }
  return found;
}

PrincipalRef Access::renew(const PrincipalRef& principal) const {
  if (!principal || everyone_) return everyone_;
  const auto same = std::ranges::find_if(principals_, [&](const PrincipalRef& known) {
    return known->name_ == principal->name_ && known->token_hash_ == principal->token_hash_;
  });
  return same == principals_.end() ? nullptr : *same;
}

PrincipalRef Access::find_certified(std::string_view name) const {
  for (const auto& principal : principals_) {
    if (principal->name_ == name) return principal;
  }
  return {};
}

NewToken make_token() {
  std::array<std::uint8_t, 32> random;
  BATON_CHECK(RAND_bytes(random.data(), random.size()) == 1);
  NewToken made{.token = "baton_", .hash = {}};
  for (const std::uint8_t byte : random) made.token += fmt::format("{:02x}", byte);
  made.hash = hash_of(made.token);
  return made;
}

}  // namespace baton::server
