#include "checkpoint/save_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "checkpoint/collective.h"
#include "checkpoint/rectangle.h"

namespace baton::checkpoint {
namespace {

struct Holder {
  Rank rank = 0;
  std::size_t index = 0;
};
// The slices of a tensor, and who has each of them.
struct Held {
  const TensorInfo* first = nullptr;
  Rank first_rank = 0;
  std::map<Rectangle, std::vector<Holder>> slices;
};

void write_shape(ByteWriter& to, const Shape& shape) {
  to.varint(shape.size());
  for (const std::uint64_t extent : shape) to.varint(extent);
}

Shape read_shape(ByteReader& from) {
  const std::uint64_t dimensions = from.varint();
  Shape shape;
  for (std::uint64_t d = 0; d < dimensions && from.ok(); ++d) shape.push_back(from.varint());
  return shape;
}

Result<std::map<std::string, Held>> held_tensors(const std::vector<std::vector<TensorInfo>>& by_rank) {
  std::map<std::string, Held> tensors;
  for (Rank rank = 0; rank < by_rank.size(); ++rank) {
    for (std::size_t index = 0; index < by_rank[rank].size(); ++index) {
      const TensorInfo& slice = by_rank[rank][index];
      if (auto fits = check(slice); !fits)
        return failure(fits.error().code, fmt::format("rank {}: {}", rank, fits.error().message));
      Held& held = tensors[slice.name];
      if (held.first == nullptr) held.first = &slice, held.first_rank = rank;
      if (slice.dtype != held.first->dtype || slice.global_shape != held.first->global_shape) {
        return failure(Errc::conflict,
                       fmt::format("tensor \"{}\" is {} {} on rank {} and {} {} on rank {}", slice.name,
                                   word(held.first->dtype), to_text(held.first->global_shape),
                                   held.first_rank, word(slice.dtype), to_text(slice.global_shape), rank));
      }
      auto& holders = held.slices[slice.slice];
      if (!holders.empty() && holders.back().rank == rank)
        return failure(Errc::invalid_request, fmt::format("rank {} has the slice {} of tensor \"{}\" twice",
                                                          rank, to_text(slice.slice), slice.name));
      holders.push_back({rank, index});
    }
  }
  return tensors;
}

Status check_covered(const std::string& name, const Held& held) {
  std::vector<Rectangle> slices;
  slices.reserve(held.slices.size());
  for (const auto& [slice, holders] : held.slices) slices.push_back(slice);
  if (const auto wrong = what_is_wrong_with(held.first->global_shape, slices))
    return failure(Errc::invalid_request,
                   fmt::format("tensor \"{}\" {}: {}", name, to_text(held.first->global_shape), *wrong));
  return {};
}

}  // namespace

Bytes encode(const std::vector<TensorInfo>& slices) {
  Bytes bytes;
  ByteWriter to(bytes);
  to.varint(slices.size());
  for (const TensorInfo& slice : slices) {
    to.text(slice.name);
    to.fixed(static_cast<std::uint8_t>(slice.dtype));
    write_shape(to, slice.global_shape);
    write_shape(to, slice.slice.offset);
    write_shape(to, slice.slice.shape);
  }
  return bytes;
}

Result<std::vector<TensorInfo>> decode_slices(ByteView bytes) {
  ByteReader from(bytes);
  std::vector<TensorInfo> slices;
  const std::uint64_t count = from.varint();
  for (std::uint64_t i = 0; i < count && from.ok(); ++i) {
    TensorInfo slice;
    slice.name = from.text();
    const auto dtype = from.fixed<std::uint8_t>();
    if (dtype > static_cast<std::uint8_t>(kLastDtype)) from.fail();
    slice.dtype = static_cast<Dtype>(dtype);
    slice.global_shape = read_shape(from);
    slice.slice.offset = read_shape(from);
    slice.slice.shape = read_shape(from);
    slices.push_back(std::move(slice));
  }
  if (!from.finished()) return failure(Errc::corrupt, "a rank's list of slices makes no sense");
  return slices;
}

Result<std::vector<std::vector<std::size_t>>> assign_writers(
    const std::vector<std::vector<TensorInfo>>& by_rank) {
  auto tensors = held_tensors(by_rank);
  if (!tensors) return std::unexpected(tensors.error());

  std::vector<std::vector<std::size_t>> plan(by_rank.size());
  std::vector<std::uint64_t> load(by_rank.size());
  struct Replicated {
    std::uint64_t bytes;
    const std::vector<Holder>* holders;
  };
  std::vector<Replicated> replicated;
  for (const auto& [name, held] : *tensors) {
    if (auto covered = check_covered(name, held); !covered) return std::unexpected(covered.error());
    for (const auto& [slice, holders] : held.slices) {
      const std::uint64_t bytes = slice_bytes(by_rank[holders.front().rank][holders.front().index]);
      if (holders.size() > 1) {
        replicated.push_back({bytes, &holders});
        continue;
      }
      plan[holders.front().rank].push_back(holders.front().index);
      load[holders.front().rank] += bytes;
    }
  }
  // The largest first, each to whoever has least to write.
  std::ranges::stable_sort(replicated, std::greater{}, &Replicated::bytes);
  for (const Replicated& slice : replicated) {
    const Holder& writer = *std::ranges::min_element(
        *slice.holders, {}, [&](const Holder& holder) { return std::pair(load[holder.rank], holder.rank); });
    plan[writer.rank].push_back(writer.index);
    load[writer.rank] += slice.bytes;
  }
  for (auto& indexes : plan) std::ranges::sort(indexes);
  return plan;
}

}  // namespace baton::checkpoint
