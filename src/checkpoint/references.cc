#include "checkpoint/references.h"

#include <fmt/format.h>

namespace baton::checkpoint {
namespace {

void add_lines(Paths& paths, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    paths.emplace(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// What one attempt needs.
Status add_needed(Storage& storage, const Attempt& attempt, Paths& paths) {
  if (attempt.trouble)
    return failure(Errc::wrong_state,
                   fmt::format("nothing is removed while it is unknown which files {} needs: {}; if it is "
                               "to go, remove {}, and gc takes the rest",
                               to_text(attempt.id), attempt.trouble->message,
                               path_in(storage, manifest_path(attempt.id))));
  if (attempt.state == AttemptState::undecided) {
    const auto held = storage.get(held_path(attempt.id));
    if (!held && held.error().code != Errc::not_found) return std::unexpected(held.error());
    if (held) add_lines(paths, text_of(*held));
  }
  if (!attempt.metadata) return {};
  for (const ShardMetadata& shard : attempt.metadata->shards) paths.insert(shard.path);
  return {};
}

}  // namespace

bool hold_files(Storage& storage, const CheckpointId& attempt, const CheckpointMetadata& base) {
  std::string held;
  for (const ShardMetadata& shard : base.shards) held += shard.path + "\n";
  const auto put = storage.put_if_absent(held_path(attempt), bytes_of(held));
  return put && *put && read_metadata(storage, base.id);
}

Result<Paths> referred_to(Storage& storage, const std::vector<Attempt>& attempts,
                          const std::set<CheckpointId>& going) {
  Paths paths;
  for (const Attempt& attempt : attempts) {
    // One that goes looks like a save under way once its manifest has gone.
    if (going.contains(attempt.id) && !attempt.trouble) continue;
    if (auto added = add_needed(storage, attempt, paths); !added) return std::unexpected(added.error());
  }
  return paths;
}

bool is_referred_to(Storage& storage, const CheckpointId& id) {
  const std::string directory = directory_of(id) + "/";
  const Status nobody = for_each_attempt(storage, [&](const Attempt& attempt) -> Status {
    Paths paths;
    if (auto added = add_needed(storage, attempt, paths); !added) return added;
    const auto first = paths.lower_bound(directory);
    const bool is_needed = first != paths.end() && first->starts_with(directory);
    return is_needed ? failure(Errc::wrong_state, *first + " is referred to") : Status{};
  });
  return !nobody;
}

}  // namespace baton::checkpoint
