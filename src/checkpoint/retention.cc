#include "checkpoint/retention.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "checkpoint/atomic_commit_protocol.h"
#include "checkpoint/references.h"

namespace baton::checkpoint {
namespace {

// Removes, or says what it would remove.
class Remover {
 public:
  Remover(Storage& storage, Really really, const Removing& removing)
      : storage_(storage), really_(really), removing_(removing) {}

  Status remove_file(const std::string& path, std::uint64_t bytes) {
    if (really_ == Really::yes) {
      if (auto gone = storage_.remove(path); !gone) return gone;
    }
    removed.files.push_back(path);
    removed.bytes += bytes;
    if (removing_) removing_(removed);
    return {};
  }
  Status remove_manifest(const CheckpointId& id) {
    return really_ == Really::yes ? storage_.remove(manifest_path(id)) : Status{};
  }
  Status remove_files(const CheckpointId& id, const Paths& needed);
  Status remove_leftovers(const std::string& prefix, std::int64_t before_ms);

  Removed removed;

 private:
  Storage& storage_;
  const Really really_;
  const Removing& removing_;
};

Status Remover::remove_files(const CheckpointId& id, const Paths& needed) {
  const std::string directory = directory_of(id);
  auto entries = storage_.list(directory);
  if (!entries) return entries.error().code == Errc::not_found ? Status{} : std::unexpected(entries.error());
  bool is_empty = true;
  for (const StorageEntry& entry : *entries) {
    const std::string path = directory + "/" + entry.name;
    if (needed.contains(path)) {
      is_empty = false;
      continue;
    }
    if (auto gone = remove_file(path, entry.bytes); !gone) return gone;
  }
  if (is_empty && really_ == Really::yes) return storage_.remove_directory(directory);
  return {};
}

// Manifests that were being written when their writer died.
Status Remover::remove_leftovers(const std::string& prefix, std::int64_t before_ms) {
  auto entries = storage_.list(prefix);
  if (!entries) return entries.error().code == Errc::not_found ? Status{} : std::unexpected(entries.error());
  for (const StorageEntry& entry : *entries) {
    if (entry.is_directory || !is_manifest_aside(entry.name) || entry.modified_ms > before_ms) continue;
    if (auto gone = remove_file(prefix + "/" + entry.name, entry.bytes); !gone) return gone;
  }
  return {};
}

// A directory says nothing of the files that grow in it.
Result<std::int64_t> last_sign_of_life(Storage& storage, const Attempt& attempt) {
  std::int64_t last = attempt.modified_ms;
  if (attempt.state != AttemptState::undecided) return last;
  auto entries = storage.list(directory_of(attempt.id));
  if (!entries && entries.error().code != Errc::not_found) return std::unexpected(entries.error());
  if (!entries) return last;
  for (const StorageEntry& entry : *entries) last = std::max(last, entry.modified_ms);
  return last;
}

// Whether what manifests refer to is there, as far as that can be told without reading it.
class FileSizes {
 public:
  explicit FileSizes(Storage& storage) : storage_(storage) {}

  // The path of a file that is missing or of another size; none if all are there.
  Result<std::string> first_lacking(const CheckpointMetadata& metadata) {
    for (const ShardMetadata& shard : metadata.shards) {
      const std::string directory = shard.path.substr(0, shard.path.rfind('/'));
      if (listed_.insert(directory).second) {
        const auto entries = storage_.list(directory);
        if (!entries && entries.error().code != Errc::not_found) return std::unexpected(entries.error());
        if (!entries) return shard.path;
        for (const StorageEntry& entry : *entries) bytes_[directory + "/" + entry.name] = entry.bytes;
      }
      const auto there = bytes_.find(shard.path);
      if (there == bytes_.end() || there->second != shard.bytes) return shard.path;
    }
    return std::string();
  }

 private:
  Storage& storage_;
  std::set<std::string> listed_;
  std::map<std::string, std::uint64_t> bytes_;
};

// By their names: an attempt is meant only until a later one of its name is committed, whatever their steps.
Result<std::map<std::string_view, CheckpointId>> meant_by_name(FileSizes& sizes,
                                                               const std::vector<Attempt>& attempts) {
  std::map<std::string_view, CheckpointId> meant;
  for (const Attempt& attempt : attempts) {
    if (!attempt.metadata) continue;
    const auto lacking = sizes.first_lacking(*attempt.metadata);
    if (!lacking) return std::unexpected(lacking.error());
    if (!lacking->empty()) continue;
    CheckpointId& newest = meant[attempt.id.prefix];
    newest = std::max(newest, attempt.id);
  }
  return meant;
}

struct GivenUp {
  CheckpointId id;
  bool is_news = false;       // it was undecided until now
  bool is_forgotten = false;  // it was given up so long ago that nobody will ask
};

// A save that has begun meanwhile may have found one of those that are going just before its manifest went,
// and one that has ended meanwhile may refer to what a listing that took its time did not tell of.
Status add_newly_referred(Storage& storage, const std::set<CheckpointId>& going, Paths& needed) {
  const auto attempts = list_attempts(storage);
  if (!attempts) return std::unexpected(attempts.error());
  auto now = referred_to(storage, *attempts, going);
  if (!now) return std::unexpected(now.error());
  needed.merge(*now);
  return {};
}

}  // namespace

Result<std::vector<Fate>> judge(Storage& storage, const std::vector<Attempt>& attempts,
                                const RetentionPolicy& policy) {
  std::vector<Fate> fates;
  FileSizes sizes(storage);
  const auto meant = meant_by_name(sizes, attempts);
  if (!meant) return std::unexpected(meant.error());
  std::uint64_t newer = 0;
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    if (!attempt->metadata) continue;
    const std::uint64_t step = attempt->step();
    const auto lacking = sizes.first_lacking(*attempt->metadata);
    if (!lacking) return std::unexpected(lacking.error());
    Fate fate{.id = attempt->id};
    if (!lacking->empty()) {
      fate.why = fmt::format("not counted, since {} is missing or of another size", *lacking);
      fates.push_back(std::move(fate));
      continue;
    }
    const bool counts = newer == 0 || meant->at(attempt->id.prefix) == attempt->id;
    if (attempt->is_pinned) {
      fate.why = "pinned";
    } else if (newer == 0) {
      fate.why = "the newest";
    } else if (!counts) {
      fate.is_kept = false;
      fate.why = "there is a later attempt";
    } else if (newer < policy.keep_last) {
      fate.why = fmt::format("among the last {}", policy.keep_last);
    } else if (policy.keep_every > 0 && step % policy.keep_every == 0) {
      fate.why = fmt::format("step {} is a multiple of {}", step, policy.keep_every);
    } else {
      fate.is_kept = false;
      fate.why = newer == 1 ? "there is a newer one" : fmt::format("there are {} newer ones", newer);
    }
    fates.push_back(std::move(fate));
    if (counts) ++newer;
  }
  std::ranges::reverse(fates);
  return fates;
}

Result<Removed> prune(Storage& storage, const RetentionPolicy& policy, Really really,
                      const Removing& removing) {
  auto attempts = list_attempts(storage);
  if (!attempts) return std::unexpected(attempts.error());
  auto fates = judge(storage, *attempts, policy);
  if (!fates) return std::unexpected(fates.error());
  std::set<CheckpointId> going;
  for (const Fate& fate : *fates)
    if (!fate.is_kept) going.insert(fate.id);
  auto needed = referred_to(storage, *attempts, going);
  if (!needed) return std::unexpected(needed.error());
  Remover remover(storage, really, removing);
  for (const Fate& fate : *fates) {
    if (fate.is_kept) continue;
    if (auto gone = remover.remove_manifest(fate.id); !gone) return std::unexpected(gone.error());
    remover.removed.checkpoints.push_back(fate.id);
  }
  if (auto added = add_newly_referred(storage, going, *needed); !added) return std::unexpected(added.error());
  for (const CheckpointId& id : going) {
    if (auto gone = remover.remove_files(id, *needed); !gone) return std::unexpected(gone.error());
  }
  remover.removed.fates = *std::move(fates);
  return std::move(remover.removed);
}

Result<Removed> collect_garbage(Storage& storage, Duration abandoned_after, std::int64_t now_ms,
                                Really really, const Removing& removing) {
  auto attempts = list_attempts(storage);
  if (!attempts) return std::unexpected(attempts.error());
  auto needed = referred_to(storage, *attempts);
  if (!needed) return std::unexpected(needed.error());
  Remover remover(storage, really, removing);
  std::set<std::string> prefixes;
  std::vector<GivenUp> given_up;
  for (const Attempt& attempt : *attempts) {
    prefixes.insert(attempt.id.prefix);
    const auto last = last_sign_of_life(storage, attempt);
    if (!last) return std::unexpected(last.error());
    const std::int64_t silent_ms = now_ms - *last;
    const bool is_undecided = attempt.state == AttemptState::undecided;
    if (!is_undecided && attempt.state != AttemptState::aborted) continue;
    if (is_undecided && silent_ms < abandoned_after.ms) {
      ++remover.removed.young;
      continue;
    }
    if (is_undecided && really == Really::yes) {
      auto verdict = AtomicCommitProtocol(storage).abort(attempt.id, "it showed no sign of life");
      if (!verdict) return std::unexpected(verdict.error());
      if (*verdict == Verdict::commit) continue;  // it has just been finished
    }
    given_up.push_back({attempt.id, is_undecided, !is_undecided && silent_ms >= kRememberedFor.ms});
  }
  if (auto added = add_newly_referred(storage, {}, *needed); !added) return std::unexpected(added.error());
  for (const auto& [id, is_news, is_forgotten] : given_up) {
    const std::size_t files = remover.removed.files.size();
    if (auto gone = remover.remove_files(id, *needed); !gone) return std::unexpected(gone.error());
    if (is_forgotten) {
      if (auto gone = remover.remove_manifest(id); !gone) return std::unexpected(gone.error());
    } else {
      ++remover.removed.remembered;
    }
    // Of one that was given up before there may be nothing left to remove.
    if (is_news || is_forgotten || remover.removed.files.size() > files)
      remover.removed.checkpoints.push_back(id);
  }
  for (const std::string& prefix : prefixes) {
    if (auto gone = remover.remove_leftovers(prefix, now_ms - abandoned_after.ms); !gone)
      return std::unexpected(gone.error());
  }
  return std::move(remover.removed);
}

std::string pin_path(const std::string& prefix) { return fmt::format("{}/{}", kPinsDirectory, prefix); }

Status pin(Storage& storage, const std::string& prefix) {
  auto put = storage.put_if_absent(pin_path(prefix), bytes_of("kept\n"));
  if (!put) return std::unexpected(put.error());
  return {};
}

Status unpin(Storage& storage, const std::string& prefix) { return storage.remove(pin_path(prefix)); }

}  // namespace baton::checkpoint
