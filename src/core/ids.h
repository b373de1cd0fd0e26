// What things are called. A task is named by the log entry that created it, a lease by the entry that
// granted it; the epoch in front keeps a restored backup from giving the same name twice.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/result.h"

namespace baton::core {

using Lsn = std::uint64_t;    // position in the log
using Epoch = std::uint32_t;  // grows with every start of a coordinator
using Slot = std::uint32_t;   // position in a table of the state; never leaves the core

struct TaskId {
  Epoch epoch = 0;
  Lsn lsn = 0;  // of its TaskCreated
  friend auto operator<=>(const TaskId&, const TaskId&) = default;
};

// Also the fencing token: (epoch, lsn) grows with every grant. The nonce keeps ids from being guessed.
struct LeaseId {
  Epoch epoch = 0;
  Lsn lsn = 0;  // of its LeaseGranted
  std::uint64_t nonce = 0;
  friend auto operator<=>(const LeaseId&, const LeaseId&) = default;
};

// The nonce is derived, so nothing has to be stored to recognise it: whoever does not have the key cannot
// make a lease id up, nor use one task's lease for another.
std::uint64_t lease_nonce(const SecretKey& key, Epoch epoch, Lsn lease, Lsn task);

// As people and programs see them: "6743b0aa-1f", "6743b0aa-20-9d0c51f3a7e2b884", all in hexadecimal.
std::string to_text(TaskId id);
std::string to_text(LeaseId id);
// For the resource a worker writes to: 24 hexadecimal digits that sort as the grants do, without the nonce.
std::string fence_text(LeaseId id);
Result<TaskId> parse_task_id(std::string_view text);
Result<LeaseId> parse_lease_id(std::string_view text);

}  // namespace baton::core
