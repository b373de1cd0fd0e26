#include "group/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"

namespace baton::group {
namespace {

const Share& nothing() {
  static const Share kNothing = std::make_shared<const std::vector<Bytes>>();
  return kNothing;
}

}  // namespace

void Meeting::arrive(Rank rank, const Operation& operation, Result<Bytes> mine, Instant deadline) {
  if (has_ended()) return;
  if (operation != operation_) {
    const std::vector<Rank> others = present();
    return fail({Errc::conflict,
                 fmt::format("{} {} at {}, and rank {} is at {}", rank_list(others),
                             others.size() == 1 ? "is" : "are", title(operation_), rank, title(operation))});
  }
  if (!mine) {
    const std::string_view said = utf8_beginning(mine.error().message, kErrorBytesMax);
    return fail({mine.error().code, fmt::format("rank {}: {}", rank, said)});
  }
  deadlines_[rank] = deadline;
  bring(rank, std::move(*mine));
  if (brought_.size() == world_size_) gather_up();
}

Rank Meeting::hearers(Rank of) const {
  switch (operation_.kind) {
    case OperationKind::barrier:
    case OperationKind::vote: return 0;
    case OperationKind::broadcast: return of == operation_.root ? world_size_ : 0;
    case OperationKind::gather: return 1;
    case OperationKind::all_gather:
    case OperationKind::all_reduce: return world_size_;
  }
  BATON_CHECK(false && "unknown kind of operation");
}

void Meeting::bring(Rank rank, Bytes mine) {
  const Rank each = hearers(rank);
  Bytes& kept = brought_[rank];
  brought_bytes_ -= kept.size();
  heard_bytes_ -= kept.size() * each;
  kept = each > 0 ? std::move(mine) : Bytes();
  brought_bytes_ += kept.size();
  heard_bytes_ += kept.size() * each;
  if (heard_bytes_ <= kHeardBytesMax) return;
  fail(
      {Errc::too_large,
       fmt::format(
           "{}: {} of {} ranks have brought {} bytes, and each of {} would hear them all; that makes {} "
           "bytes, and {} is the most. Put what is large into storage, and bring its path",
           title(operation_), came(), world_size_, heard_bytes_ / each, each, heard_bytes_, kHeardBytesMax)});
}

void Meeting::recall(Rank rank, const Kept& kept) {
  if (has_ended()) return;
  if (kept.operation != operation_) return arrive(rank, kept.operation, Bytes{}, {});
  if (!kept.outcome) return fail(kept.outcome.error());
  // What it never told anybody, a rank made up: that is for it to see to, and for nobody else to hear.
  const std::size_t shares = operation_.kind == OperationKind::broadcast ? 1 : 0;
  if (!gathers(operation_.kind) && (*kept.outcome)->size() != shares) return;
  is_complete_ = true;
  // A gathering is known to its root only, or to all of them together; a large one is not told again.
  const bool knows_all = !gathers(operation_.kind) || (*kept.outcome)->size() == world_size_;
  if (knows_all) return end(*kept.outcome);
  bring(rank, kept.contribution);
  if (brought_.size() == world_size_) gather_up();
}

void Meeting::gather_up() {
  std::vector<Bytes> all;
  if (operation_.kind == OperationKind::broadcast) {
    all.push_back(std::move(brought_.at(operation_.root)));
  } else if (gathers(operation_.kind)) {
    for (auto& [rank, bytes] : brought_) all.push_back(std::move(bytes));
  }
  end(std::make_shared<const std::vector<Bytes>>(std::move(all)));
}

void Meeting::end(Share everything) {
  is_complete_ = true;
  everything_ = std::move(everything);
  for (const Bytes& bytes : *everything_) everything_bytes_ += bytes.size() + kAroundHeld;
  let_go();
}

// What it held to come to its end.
void Meeting::let_go() {
  brought_.clear();
  brought_bytes_ = heard_bytes_ = 0;
  deadlines_.clear();
}

void Meeting::fail(Error error) {
  if (has_ended()) return;
  trouble_ = std::move(error);
  let_go();
}

std::size_t Meeting::held_bytes() const {
  return sizeof *this + kAroundHeld + operation_.name.size() + brought_bytes_ +
         brought_.size() * kAroundHeld + everything_bytes_ + (trouble_ ? trouble_->message.size() : 0);
}

std::vector<Rank> Meeting::present() const {
  std::vector<Rank> ranks;
  ranks.reserve(brought_.size());
  for (const auto& [rank, bytes] : brought_) ranks.push_back(rank);
  return ranks;
}

std::vector<Rank> Meeting::missing() const {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < world_size_; ++rank) {
    if (!has(rank)) ranks.push_back(rank);
  }
  return ranks;
}

std::optional<std::pair<Instant, Rank>> Meeting::first_deadline() const {
  std::optional<std::pair<Instant, Rank>> first;
  for (const auto& [rank, at] : deadlines_) {
    if (!first || at < first->first) first = {at, rank};
  }
  return first;
}

std::optional<Result<Share>> Meeting::outcome_for(Rank rank) const {
  if (is_complete_ && operation_.kind == OperationKind::gather && rank != operation_.root) return nothing();
  if (trouble_) return std::unexpected(*trouble_);
  if (!everything_) return std::nullopt;
  return everything_;
}

}  // namespace baton::group
