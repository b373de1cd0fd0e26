#include "checkpoint/atomic_commit_protocol.h"

namespace baton::checkpoint {

Result<Verdict> AtomicCommitProtocol::commit(const CheckpointMetadata& metadata) {
  return decide(metadata.id, Verdict::commit, MetadataSerializer::serialize(metadata));
}

Result<Verdict> AtomicCommitProtocol::abort(const CheckpointId& id, std::string_view why) {
  return decide(id, Verdict::abort, MetadataSerializer::serialize_abort(id, why));
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
