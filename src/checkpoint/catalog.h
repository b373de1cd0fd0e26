// What is in a store: checkpoints that were committed, and attempts that were not.
//
//   <root>/step-0000001000/a0001-3f9c…/r00003.safetensors    shards of an attempt
//   <root>/step-0000001000/a0001-3f9c….manifest              what was decided about it
//   <root>/pins/step-0000001000                              must be kept
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/metadata.h"
#include "checkpoint/storage.h"

namespace baton::checkpoint {

inline constexpr std::size_t kPrefixBytesMax = 100;
inline constexpr std::string_view kPinsDirectory = "pins";

std::string step_prefix(std::uint64_t step);  // step-0000001000
std::optional<std::uint64_t> step_in(std::string_view prefix);
std::optional<std::uint64_t> number_in(std::string_view text);  // if it is nothing else
Status check_prefix(const std::string& prefix);                 // of one that may be there
Status check_new_prefix(const std::string& prefix);  // nor one that would mean another when it is loaded

enum class AttemptState : std::uint8_t {
  committed,
  aborted,
  undecided,   // being written, or left behind
  unreadable,  // there is a manifest, and it is damaged or newer than we are
};
std::string_view word(AttemptState state);

struct Attempt {
  CheckpointId id;
  AttemptState state = AttemptState::undecided;
  std::optional<CheckpointMetadata> metadata;  // of a committed one
  std::optional<Error> trouble;                // of an unreadable one
  std::int64_t modified_ms = 0;                // the last sign of life
  bool is_pinned = false;

  // By which a newer one is told from an older one: the step it is called after, so that a listing is enough
  // to find the newest, or else that of its manifest. If that cannot be read, it counts as the newest, for
  // nobody should go back unawares.
  std::uint64_t step() const;
};

// Each with its manifest, of which one at a time is kept. Ends with the first error, also one of `visit`.
Status for_each_attempt(Storage& storage, const std::function<Status(Attempt)>& visit);
// In the order of steps and then of attempts.
Result<std::vector<Attempt>> list_attempts(Storage& storage);
Result<CheckpointMetadata> read_metadata(Storage& storage, const CheckpointId& id);

// What a listing of one prefix tells, in the order of attempts.
struct ListedAttempt {
  CheckpointId id;
  bool is_decided = false;  // there is a manifest
  std::int64_t modified_ms = 0;
};
Result<std::vector<ListedAttempt>> list_prefix(Storage& storage, const std::string& prefix);
// With what was decided, if anything was. None if it was pruned since then.
std::optional<Attempt> read_attempt(Storage& storage, const ListedAttempt& listed);

// Of a file: a manifest that was being written.
bool is_manifest_aside(std::string_view name);

// A name for a new attempt: after those that are there.
Result<CheckpointId> new_attempt(Storage& storage, const std::string& prefix);

}  // namespace baton::checkpoint
