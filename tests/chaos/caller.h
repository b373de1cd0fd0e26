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

inline constexpr std::size_t kFillers = 30;
inline const client::Held kNobodys{.task = "1-1", .lease = "1-1-1"};

class Caller {
 public:
  virtual ~Caller() = default;
  // Times and who are filled in by others.
  virtual Operation submit(const std::string& key) = 0;
  // All of them before the first answer, and before each kFillers that are refused: so many that the server
  // reads on while another thread is at the disk. Each tells when its own answer came.
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
