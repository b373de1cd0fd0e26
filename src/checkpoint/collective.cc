#include "checkpoint/collective.h"

#include <fmt/format.h>

#include "checkpoint/turns.h"

namespace baton::checkpoint {
namespace {

// How many a rank gets.
std::size_t shares_of(const Operation& operation, Rank rank, Rank world_size) {
  if (operation.kind == OperationKind::broadcast) return 1;
  const bool hears_all = operation.kind != OperationKind::gather || operation.root == rank;
  return group::gathers(operation.kind) && hears_all ? world_size : 0;
}

}  // namespace

Contribution brought(const Result<Bytes>& mine) {
  if (!mine) return std::unexpected(mine.error());
  return ByteView(*mine);
}

Collective::Collective() : background_turns_(std::make_shared<Turns>()) {}

Status Collective::barrier(const Call& call) {
  auto met = checked_meet({OperationKind::barrier, call.name}, ByteView{}, call);
  if (!met) return std::unexpected(met.error());
  return {};
}

Result<Bytes> Collective::broadcast(const Call& call, const Contribution& of_root, Rank root) {
  const bool is_root = rank() == root;
  auto got = checked_meet({OperationKind::broadcast, call.name, root},
                          is_root || !of_root ? of_root : ByteView{}, call);
  if (!got) return std::unexpected(got.error());
  return std::move(got->front());
}

Result<std::vector<Bytes>> Collective::gather(const Call& call, const Contribution& mine, Rank root) {
  return checked_meet({OperationKind::gather, call.name, root}, mine, call);
}

Result<std::vector<Bytes>> Collective::all_gather(const Call& call, const Contribution& mine) {
  return checked_meet({OperationKind::all_gather, call.name}, mine, call);
}

Result<Bytes> Collective::all_reduce(const Call& call, const Contribution& mine, const Reducer& reducer) {
  auto all = all_to_reduce(call, mine);
  if (!all) return std::unexpected(all.error());
  Bytes folded = std::move(all->front());
  for (std::size_t from = 1; from < all->size(); ++from) folded = reducer(folded, (*all)[from]);
  return folded;
}

Result<std::vector<Bytes>> Collective::all_to_reduce(const Call& call, const Contribution& mine) {
  return checked_meet({OperationKind::all_reduce, call.name}, mine, call);
}

Status Collective::vote(const Call& call, const Status& mine) {
  Contribution contribution;
  if (!mine) contribution = std::unexpected(mine.error());
  auto met = checked_meet({OperationKind::vote, call.name}, contribution, call);
  if (!met) return std::unexpected(met.error());
  return {};
}

// What cannot be brought is told to the others too: they would wait in vain. Where there are none, nobody
// asks which rank it was.
Result<std::vector<Bytes>> Collective::checked_meet(const Operation& operation, const Contribution& mine,
                                                    const Call& call) {
  if (call.name.empty() || call.name.size() > kOperationNameBytesMax)
    return failure(Errc::invalid_request,
                   fmt::format("the name of an operation has 1 to {} bytes", kOperationNameBytesMax));
  if (operation.root >= world_size())
    return failure(Errc::invalid_request,
                   fmt::format("there is no rank {} to be the root of \"{}\": they are 0 to {}",
                               operation.root, call.name, world_size() - 1));
  Contribution brought = mine;
  if (mine && mine->size() > kContributionBytesMax)
    brought =
        failure(Errc::too_large, fmt::format("its contribution to \"{}\" has {} bytes, and {} is the most",
                                             call.name, mine->size(), kContributionBytesMax));
  if (!brought && world_size() == 1) return std::unexpected(brought.error());
  auto met = meet(operation, brought, call);
  const std::size_t shares = shares_of(operation, rank(), world_size());
  if (!met || met->size() == shares) return met;
  // It may have come over a network, from whoever speaks as a coordinator does.
  return failure(Errc::corrupt, fmt::format("{} gave {} shares in place of {}", group::title(operation),
                                            met->size(), shares));
}

}  // namespace baton::checkpoint
