#include "checkpoint/atomic_commit_protocol.h"

#include <fmt/format.h>

#include "checkpoint/references.h"

namespace baton::checkpoint {

Result<Verdict> AtomicCommitProtocol::commit(const CheckpointMetadata& metadata) {
  return decide(metadata.id, Verdict::commit, MetadataSerializer::serialize(metadata));
}

Result<Verdict> AtomicCommitProtocol::abort(const CheckpointId& id, std::string_view why) {
  return decide(id, Verdict::abort, MetadataSerializer::serialize_abort(id, why));
}

Status AtomicCommitProtocol::give_up(const CheckpointId& id, const Error& why) {
  const auto verdict = abort(id, why.message);
  if (!verdict) {
    // Others may have decided meanwhile, or will, and this one cannot know.
    std::string said = why.message;
    if (!said.ends_with(verdict.error().message))
      said += fmt::format("; and that {} is given up could not be written down: {}", to_text(id),
                          verdict.error().message);
    return failure(why.code, said + "; `baton checkpoint ls` shows what became of it");
  }
  if (*verdict == Verdict::commit) return {};
  // It may have been committed without our hearing of it, and pruned since: then others may need its files.
  // What is not removed now is garbage, and found as such.
  if (!is_referred_to(storage_, id)) (void)storage_.remove_directory(directory_of(id));
  return std::unexpected(why);
}

Result<Verdict> AtomicCommitProtocol::decide(const CheckpointId& id, Verdict wanted,
                                             std::string_view manifest) {
  auto was_first = storage_.put_if_absent(manifest_path(id), bytes_of(manifest));
  if (!was_first) return std::unexpected(was_first.error());
  if (*was_first) return wanted;
  auto there = storage_.get(manifest_path(id));
  if (!there) return std::unexpected(there.error());
  return MetadataSerializer::verdict(text_of(*there));
}

}  // namespace baton::checkpoint
