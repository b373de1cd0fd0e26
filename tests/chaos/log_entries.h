// The log as `baton log dump --json` prints it, as far as the checks look at it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/chaos/history.h"

namespace baton::chaos {

struct Entry {
  Lsn lsn = 0;
  std::string type;  // TaskCreated, LeaseGranted, …
  Lsn task = 0;
  Lsn lease = 0;  // LeaseGranted: its own lsn
  std::string key;
  std::string worker;
  std::uint32_t attempt = 0;
  std::string outcome;  // TaskFailed: retried, failed or released
};
using Log = std::vector<Entry>;

Entry entry_of(std::string_view line);
// Empty, and a complaint in `trouble`, if the command does not succeed.
Log read_log(const std::string& program, const std::string& directory, std::string& trouble);

}  // namespace baton::chaos
