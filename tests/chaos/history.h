// What clients asked and heard, each for itself, outside the process under test. The checks know nothing else
// but this and the log.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::chaos {

using Lsn = std::uint64_t;

enum class Kind : std::uint8_t { submit, lease, extend, complete, fail, get, write };
enum class Outcome : std::uint8_t {
  done,     // `word`, `lsn` and the rest are what the reply said
  refused,  // `word` is the error's
  unknown,  // it was sent, and no answer came
  absent,   // the client says that nothing happened
};

struct Operation {
  Kind kind = Kind::submit;
  Outcome outcome = Outcome::unknown;
  std::string who;              // client or worker
  std::string key;              // submit: what the task was submitted under
  std::string word;             // status, state, error
  Lsn task = 0;                 // named by the entry that created it
  Lsn lease = 0;                // named by the entry that granted it; 0: nothing was leased
  std::uint32_t attempt = 0;    // lease
  bool existed = false;         // submit: the task was there
  Lsn lsn = 0;                  // of the reply; 0: it had none
  std::int64_t ttl_us = 0;      // lease, extend: of the lease from then on
  std::int64_t invoked_us = 0;  // by a clock that all processes share
  std::int64_t returned_us = 0;

  friend bool operator==(const Operation&, const Operation&) = default;
};

// A history as text: a line for each operation, so that processes can hand theirs over and a bad one is kept.
std::string to_line(const Operation& operation);
std::optional<Operation> operation_of(std::string_view line);

// The number behind the first '-' of "6743b0aa-1f" or "6743b0aa-20-9d0c51f3…"; 0 if there is none.
Lsn lsn_of(std::string_view id);

std::int64_t now_us();  // since boot

class History {
 public:
  void add(Operation operation) {
    const std::lock_guard lock(mutex_);
    operations_.push_back(std::move(operation));
  }
  std::vector<Operation> taken() const {
    const std::lock_guard lock(mutex_);
    return operations_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Operation> operations_;
};

}  // namespace baton::chaos
