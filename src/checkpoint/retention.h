// Which checkpoints are kept, and what happens to the others and to what failed saves left behind.
//
// A checkpoint goes by its manifest being removed first: from then on it is none, whatever is left of it.
// Files that another checkpoint refers to stay.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "checkpoint/catalog.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

struct RetentionPolicy {
  std::uint64_t keep_last = 3;
  std::uint64_t keep_every = 0;  // steps that are multiples of this, too; 0: none
};

struct Fate {
  CheckpointId id;
  bool is_kept = true;
  std::string why;
};
// Pinned ones and the newest are kept, whatever the policy. In the order of the attempts.
Result<std::vector<Fate>> judge(Storage& storage, const std::vector<Attempt>& attempts,
                                const RetentionPolicy& policy);

struct Removed {
  std::vector<Fate> fates;  // by which it was pruned
  std::vector<CheckpointId> checkpoints;
  std::vector<std::string> files;
  std::uint64_t bytes = 0;
  // What garbage collection leaves where it is:
  std::uint64_t young = 0;       // saves that may still be under way
  std::uint64_t remembered = 0;  // that they were given up; nothing else is left of them
};
enum class Really : bool { no, yes };                  // no: just says what would be done
using Removing = std::function<void(const Removed&)>;  // told of everything removed so far, after each file

Result<Removed> prune(Storage& storage, const RetentionPolicy& policy, Really really,
                      const Removing& removing = {});

// A save that has shown no sign of life for this long is given up before its files go: should it still be
// under way, it fails, and harms nothing.
inline constexpr Duration kAbandonedAfter = hours(1);
// That it was given up is remembered for long: a process may sleep, wake up, and try to commit it.
inline constexpr Duration kRememberedFor = days(7);
Result<Removed> collect_garbage(Storage& storage, Duration abandoned_after, std::int64_t now_ms,
                                Really really, const Removing& removing = {});

std::string pin_path(const std::string& prefix);
Status pin(Storage& storage, const std::string& prefix);
Status unpin(Storage& storage, const std::string& prefix);

}  // namespace baton::checkpoint
