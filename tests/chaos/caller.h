// Somebody who calls the server, over a bare socket or through the C++ client, and tells what came of it as
// an operation of the history. One thread each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "client/types.h"
#include "tests/chaos/history.h"

namespace baton::chaos {

inline constexpr const char* kQueue = "chaos";
inline constexpr Duration kPatience = milliseconds(700);  // for one answer

class Caller {
 public:
  virtual ~Caller() = default;
  // Times and who are filled in by others.
  virtual Operation submit(const std::string& key) = 0;
  // All of them before the first answer; each tells when its own came.
  virtual std::vector<Operation> submit_all(const std::vector<std::string>& keys) = 0;
  virtual Operation lease(const std::string& worker, Duration ttl, client::Held& held) = 0;
  virtual Operation extend(const client::Held& held, Duration ttl) = 0;
  virtual Operation complete(const client::Held& held) = 0;
  virtual Operation fail(const client::Held& held) = 0;
  virtual Operation get(const std::string& key) = 0;
};

std::unique_ptr<Caller> bare_caller(std::uint16_t port);
std::unique_ptr<Caller> library_caller(std::uint16_t port);

}  // namespace baton::chaos
