// What the coordinator does with its disk beside the log: makes snapshots, cleans up, reads payloads back.
#include <fmt/format.h>

#include <utility>

#include "base/hash.h"
#include "tests/sim/node.h"
#include "tests/sim/violation.h"

namespace baton::sim {

void Node::want_snapshot() {
  if (housekeeping_) return;
  housekeeping_ = true;
  around_.agenda.plan(around_.clock.now + 1, Due::housekeeping, incarnation_);
}

void Node::housekeep() {
  auto made = housekeeper_->make_snapshot();
  if (!made || made->lsn == 0) {
    housekeeping_ = false;
    if (!made && made.error().code == Errc::corrupt && around_.scenario.mode() != Mode::lying)
      throw Violation{"I5", made.error().message};
    return;
  }
  around_.faults.struck(Fault::snapshot_made);
  if (made->digest != around_.witness.ledger().digest(made->lsn))
    throw Violation{"I5", fmt::format("the snapshot at entry {} is not the state there was", made->lsn)};
  snapshot_ = *made;
  wake(around_.clock.now);
}

void Node::clean_up() {
  housekeeping_ = false;
  const std::size_t before = log_->writer().segments().list().size();
  auto cleaned = housekeeper_->clean_up();
  around_.faults.struck(Fault::segment_removed, before - log_->writer().segments().list().size());
  if (!cleaned) return;
  if (!cleaned->notes.empty() && !may_miss_bytes()) throw Violation{"I5", cleaned->notes.front()};
  for (core::MoveBlob& move : cleaned->moves) backlog_.push_back({.move = std::move(move)});
  if (!cleaned->moves.empty()) wake(around_.clock.now);
}

Result<Bytes> Node::read(const core::BlobRef& blob) {
  if (blob.length == 0) return Bytes{};
  return log_->writer().segments().read(blob.lsn, blob.offset, blob.length);
}

void Node::check_blobs() {
  if (may_miss_bytes()) return;
  const core::State& state = engine_->state();
  const auto check = [&](const core::BlobRef& blob) {
    if (blob.length == 0 || blob.lsn > log_->durable()) return;
    auto bytes = read(blob);
    if (bytes && content_hash(*bytes) == blob.hash) return;
    throw Violation{"I2", fmt::format("the bytes of entry {} are needed and cannot be read", blob.lsn)};
  };
  for (core::Slot slot = state.ids.first_from(0); slot != 0;
       slot = state.ids.first_from(state.tasks[slot].lsn + 1)) {
    check(state.tasks[slot].payload);
    for (core::Slot at = state.tasks[slot].endings; at != 0; at = state.endings[at].next)
      check(state.endings[at].note);
  }
  const core::streams::Streams& streams = state.streams;
  const auto check_message = [&](const core::streams::Message& message) {
    check(message.body);
    check(message.error);
  };
  for (core::Slot slot = streams.message_numbers.first_from(0); slot != 0;
       slot = streams.message_numbers.first_from(streams.messages[slot].number + 1))
    check_message(streams.messages[slot]);
  for (const auto* letters : {&streams.dead, &streams.kept}) {
    for (core::Slot slot = letters->by_age.head; slot != 0; slot = letters->all[slot].next)
      check_message(letters->all[slot].message);
  }
}

}  // namespace baton::sim
