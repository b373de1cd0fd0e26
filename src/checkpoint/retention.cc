#include "checkpoint/retention.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "checkpoint/atomic_commit_protocol.h"

namespace baton::checkpoint {
namespace {

// That an attempt was given up is remembered for long: a process may sleep, wake up, and try to commit it.
constexpr Duration kRememberedFor = days(7);

using Paths = std::set<std::string>;

// What the checkpoints that stay refer to. A manifest that cannot be read may refer to anything.
Result<Paths> referred_to(const std::vector<Attempt>& attempts, const std::set<CheckpointId>& going) {
  Paths paths;
  for (const Attempt& attempt : attempts) {
    if (attempt.trouble)
      return failure(Errc::wrong_state,
                     fmt::format("nothing is removed while it is unknown which files {} needs: {}; remove "
                                 "its manifest if it is to go",
                                 to_text(attempt.id), attempt.trouble->message));
    if (!attempt.metadata || going.contains(attempt.id)) continue;
    for (const ShardMetadata& shard : attempt.metadata->shards) paths.insert(shard.path);
  }
  return paths;
}

Status remove_files(Storage& storage, const CheckpointId& id, const Paths& needed, Really really,
                    Removed& removed) {
  const std::string directory = directory_of(id);
  auto entries = storage.list(directory);
  if (!entries) return entries.error().code == Errc::not_found ? Status{} : std::unexpected(entries.error());
  bool is_empty = true;
  for (const StorageEntry& entry : *entries) {
    const std::string path = directory + "/" + entry.name;
    if (needed.contains(path)) {
      is_empty = false;
      continue;
    }
    if (really == Really::yes) {
      if (auto gone = storage.remove(path); !gone) return gone;
    }
    removed.files.push_back(path);
    removed.bytes += entry.bytes;
  }
  if (is_empty && really == Really::yes) return storage.remove_directory(directory);
  return {};
}

// Manifests that were being written when their writer died.
Status remove_leftovers(Storage& storage, const std::string& prefix, std::int64_t before_ms, Really really,
                        Removed& removed) {
  auto entries = storage.list(prefix);
  if (!entries) return std::unexpected(entries.error());
  for (const StorageEntry& entry : *entries) {
    if (entry.is_directory || !entry.name.ends_with(".tmp") || entry.modified_ms > before_ms) continue;
    const std::string path = prefix + "/" + entry.name;
    if (really == Really::yes) {
      if (auto gone = storage.remove(path); !gone) return gone;
    }
    removed.files.push_back(path);
    removed.bytes += entry.bytes;
  }
  return {};
}

}  // namespace

std::vector<Fate> judge(const std::vector<Attempt>& attempts, const RetentionPolicy& policy) {
  std::vector<Fate> fates;
  std::uint64_t newer = 0;
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    if (!attempt->metadata) continue;
    const std::uint64_t step = attempt->metadata->training.step;
    Fate fate{.id = attempt->id};
    if (attempt->is_pinned) {
      fate.why = "pinned";
    } else if (newer == 0) {
      fate.why = "the newest";
    } else if (newer < policy.keep_last) {
      fate.why = fmt::format("among the last {}", policy.keep_last);
    } else if (policy.keep_every > 0 && step % policy.keep_every == 0) {
      fate.why = fmt::format("step {} is a multiple of {}", step, policy.keep_every);
    } else {
      fate.is_kept = false;
      fate.why = fmt::format("{} newer ones", newer);
    }
    fates.push_back(std::move(fate));
    ++newer;
  }
  std::ranges::reverse(fates);
  return fates;
}

Result<Removed> prune(Storage& storage, const RetentionPolicy& policy, Really really) {
  auto attempts = list_attempts(storage);
  if (!attempts) return std::unexpected(attempts.error());
  Removed removed;
  std::set<CheckpointId> going;
  for (const Fate& fate : judge(*attempts, policy)) {
    if (fate.is_kept) continue;
    going.insert(fate.id);
    removed.checkpoints.push_back(fate.id);
  }
  auto needed = referred_to(*attempts, going);
  if (!needed) return std::unexpected(needed.error());
  for (const CheckpointId& id : removed.checkpoints) {
    if (really == Really::yes) {
      if (auto gone = storage.remove(manifest_path(id)); !gone) return std::unexpected(gone.error());
    }
    if (auto gone = remove_files(storage, id, *needed, really, removed); !gone)
      return std::unexpected(gone.error());
  }
  return removed;
}

Result<Removed> collect_garbage(Storage& storage, Duration abandoned_after, std::int64_t now_ms,
                                Really really) {
  auto attempts = list_attempts(storage);
  if (!attempts) return std::unexpected(attempts.error());
  auto needed = referred_to(*attempts, {});
  if (!needed) return std::unexpected(needed.error());
  Removed removed;
  std::set<std::string> prefixes;
  for (const Attempt& attempt : *attempts) {
    prefixes.insert(attempt.id.prefix);
    const std::int64_t silent_ms = now_ms - attempt.modified_ms;
    if (attempt.state == AttemptState::undecided && silent_ms >= abandoned_after.ms) {
      if (really == Really::yes) {
        auto verdict = AtomicCommitProtocol(storage).abort(attempt.id, "it showed no sign of life");
        if (!verdict) return std::unexpected(verdict.error());
        if (*verdict == Verdict::commit) continue;  // it has just been finished
      }
    } else if (attempt.state != AttemptState::aborted) {
      continue;
    }
    if (auto gone = remove_files(storage, attempt.id, *needed, really, removed); !gone)
      return std::unexpected(gone.error());
    removed.checkpoints.push_back(attempt.id);
    if (attempt.state == AttemptState::aborted && silent_ms >= kRememberedFor.ms && really == Really::yes) {
      if (auto gone = storage.remove(manifest_path(attempt.id)); !gone) return std::unexpected(gone.error());
    }
  }
  for (const std::string& prefix : prefixes) {
    if (auto gone = remove_leftovers(storage, prefix, now_ms - abandoned_after.ms, really, removed); !gone)
      return std::unexpected(gone.error());
  }
  return removed;
}

Status pin(Storage& storage, const std::string& prefix) {
  auto put = storage.put_if_absent(fmt::format("{}/{}", kPinsDirectory, prefix), bytes_of("kept\n"));
  if (!put) return std::unexpected(put.error());
  return {};
}

Status unpin(Storage& storage, const std::string& prefix) {
  return storage.remove(fmt::format("{}/{}", kPinsDirectory, prefix));
}

}  // namespace baton::checkpoint
