// Who may do what. Without a file of tokens everyone who can connect may do everything, and a server then
// listens on loopback only.
//
// The file has a line for each principal: a name, the SHA-256 of its token, and what it may do where.
//
//   # name    sha-256 of the token     namespace=permissions …
//   ci        5e884898da28…            default=submit,query
//   gpu-box   60303ae22b99…            default=work  render=work,query
//   ops       2bb80d537b1d…            *=all
//
// A name may have two lines, so that a token can be replaced without a gap.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton::server {

// What a principal may be allowed to do in a namespace.
enum class Permission : std::uint8_t { submit, work, query, admin };
std::string_view name_of(Permission permission);

class Principal {
 public:
  const std::string& name() const { return name_; }
  bool may(Permission permission, std::string_view ns) const;

 private:
  friend class Access;
  std::string name_;
  std::string token_hash_;                                // SHA-256
  std::map<std::string, unsigned, std::less<>> allowed_;  // a bit for each permission; "*" is every namespace
};
using PrincipalRef = std::shared_ptr<const Principal>;  // shared: files are read again while it is used

class Access {
 public:
  static Access open_to_all();
  static Result<Access> read(std::string_view text);
  static Result<Access> read_file(const std::string& path);

  bool needs_token() const { return !everyone_; }
  PrincipalRef everyone() const { return everyone_; }  // none if a token is needed
  // Takes as long whichever token is wrong. A name may be left empty.
  PrincipalRef find(std::string_view name, std::string_view token) const;
  // Somebody of an earlier file, as this one has it: under the same name and token, or not at all.
  PrincipalRef renew(const PrincipalRef& principal) const;
  // By the name in a client's certificate, which took the place of a token.
  PrincipalRef find_certified(std::string_view name) const;

 private:
  std::vector<std::shared_ptr<const Principal>> principals_;
  PrincipalRef everyone_;
};

struct NewToken {
  std::string token;  // to be shown once
  std::string hash;   // for the file
};
NewToken make_token();

}  // namespace baton::server
