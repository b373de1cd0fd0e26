#include "checkpoint/atomic_commit_protocol.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/references.h"

namespace baton::checkpoint {
namespace {

// What the rank has put there since the decision, so that whoever decided may have missed it.
bool has_later_files(Storage& storage, const CheckpointId& id, const std::optional<Rank>& by) {
  const auto written = storage.list(directory_of(id));
  if (!written) return false;
  const auto decisions = storage.list(id.prefix);
  if (!decisions) return false;
  std::int64_t decided_ms = 0;
  for (const StorageEntry& entry : *decisions)
    if (id.prefix + "/" + entry.name == manifest_path(id)) decided_ms = entry.modified_ms;
  const std::string begin = by ? fmt::format("r{:05}.", *by) : "";
  return std::ranges::any_of(*written, [&](const StorageEntry& entry) {
    return entry.name.starts_with(begin) && entry.modified_ms >= decided_ms;
  });
}

}  // namespace

Result<Verdict> AtomicCommitProtocol::commit(const CheckpointMetadata& metadata) {
  const auto decision = decide(metadata.id, Verdict::commit, MetadataSerializer::serialize(metadata));
  if (!decision) return std::unexpected(decision.error());
  return decision->verdict;
}

Result<Verdict> AtomicCommitProtocol::abort(const CheckpointId& id, std::string_view why) {
  const auto decision = decide(id, Verdict::abort, MetadataSerializer::serialize_abort(id, why));
  if (!decision) return std::unexpected(decision.error());
  return decision->verdict;
}

Status AtomicCommitProtocol::give_up(const CheckpointId& id, const Error& why, std::optional<Rank> by) {
  const auto decision = decide(id, Verdict::abort, MetadataSerializer::serialize_abort(id, why.message));
  if (!decision) {
    // Others may have decided meanwhile, or will, and this one cannot know.
    std::string said = why.message;
    if (!said.ends_with(decision.error().message))
      said += fmt::format("; and that {} is given up could not be written down: {}", to_text(id),
                          decision.error().message);
    return failure(why.code, said + "; `baton checkpoint ls` shows what became of it");
  }
  if (decision->verdict == Verdict::commit) return {};
  // It may have been committed without our hearing of it, and pruned since: then others may need its files.
  // To know that, every manifest is read, which is not for all ranks to do. What is not removed now is
  // garbage, and found as such.
  const bool is_ours_to_do = decision->is_ours || has_later_files(storage_, id, by);
  if (is_ours_to_do && !is_referred_to(storage_, id)) (void)storage_.remove_directory(directory_of(id));
  return std::unexpected(why);
}

Result<AtomicCommitProtocol::Decision> AtomicCommitProtocol::decide(const CheckpointId& id, Verdict wanted,
                                                                    std::string_view manifest) {
  auto was_first = storage_.put_if_absent(manifest_path(id), bytes_of(manifest));
  if (!was_first) return std::unexpected(was_first.error());
  if (*was_first) return Decision{wanted, true};
  auto there = storage_.get(manifest_path(id));
  if (!there) return std::unexpected(there.error());
  const auto verdict = MetadataSerializer::verdict(text_of(*there));
  if (!verdict) return std::unexpected(verdict.error());
  return Decision{*verdict, false};
}

}  // namespace baton::checkpoint
