#include "checkpoint/load_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "checkpoint/rectangle.h"

namespace baton::checkpoint {
namespace {

struct Place {
  std::size_t shard = 0;
  const TensorMetadata* tensor = nullptr;
};
// Of a tensor's slices, in the order of their first offset.
struct Places {
  std::vector<Place> all;
  std::uint64_t longest = 0;  // along the first dimension

  static std::uint64_t begin_of(const Place& place) { return place.tensor->info.slice.offset[0]; }
  // Those that may have something in common with the wanted slice; there may be very many others.
  std::span<const Place> near(const Rectangle& wanted) const {
    if (wanted.offset.empty()) return all;
    const std::uint64_t end = wanted.offset[0] + wanted.shape[0];
    const std::uint64_t begin = wanted.offset[0] - std::min(wanted.offset[0], longest);
    return {std::ranges::lower_bound(all, begin, {}, begin_of),
            std::ranges::lower_bound(all, end, {}, begin_of)};
  }
};

std::optional<std::string> mismatch(const TensorInfo& wanted, const TensorInfo& there) {
  if (wanted.dtype == there.dtype && wanted.global_shape == there.global_shape) return {};
  return fmt::format("tensor \"{}\" is {} {} there, and {} {} is wanted", wanted.name, word(there.dtype),
                     to_text(there.global_shape), word(wanted.dtype), to_text(wanted.global_shape));
}

void add_copies(const Place& place, const TensorTarget& target, LoadPlan& plan) {
  const TensorMetadata& tensor = *place.tensor;
  const auto common = intersection(tensor.info.slice, target.info.slice);
  if (!common) return;
  const std::uint64_t width = element_bytes(tensor.info.dtype);
  for_each_run(*common, tensor.info.slice, target.info.slice, [&](const Run& run) {
    plan.by_shard[place.shard].push_back(
        {tensor.begin + run.from * width, run.count * width, target.data.data() + run.to * width});
  });
  plan.report.bytes_needed += *elements_of(common->shape) * width;
}

void sort_copies(LoadPlan& plan) {
  for (std::vector<Copy>& copies : plan.by_shard) std::ranges::sort(copies, {}, &Copy::begin);
}

}  // namespace

std::vector<std::vector<std::size_t>> compute_shard_assignments(std::size_t shard_count,
                                                                Rank target_world_size) {
  std::vector<std::vector<std::size_t>> by_rank(target_world_size);
  for (std::size_t shard = 0; shard < shard_count; ++shard)
    by_rank[shard % target_world_size].push_back(shard);
  return by_rank;
}

struct LoadPlanner::Index {
  std::map<std::string_view, Places> tensors;
};

LoadPlanner::LoadPlanner(const CheckpointMetadata& metadata)
    : index_([&] {
        auto index = std::make_unique<Index>();
        for (std::size_t shard = 0; shard < metadata.shards.size(); ++shard)
          for (const TensorMetadata& tensor : metadata.shards[shard].tensors) {
            std::vector<Place>& all = index->tensors[tensor.info.name].all;
            // In one that is valid, all slices of a tensor are of one shape; others cannot be put together.
            if (all.empty() || all.front().tensor->info.global_shape == tensor.info.global_shape)
              all.push_back({shard, &tensor});
          }
        for (auto& [name, places] : index->tensors) {
          if (places.all.front().tensor->info.global_shape.empty()) continue;
          std::ranges::sort(places.all, {}, Places::begin_of);
          for (const Place& place : places.all)
            places.longest = std::max(places.longest, place.tensor->info.slice.shape[0]);
        }
        return index;
      }()),
      metadata_(metadata) {}
LoadPlanner::~LoadPlanner() = default;

std::vector<std::string_view> LoadPlanner::names() const {
  std::vector<std::string_view> names;
  for (const auto& [name, places] : index_->tensors) names.push_back(name);
  return names;
}

LoadPlan LoadPlanner::plan(std::span<const TensorTarget> wanted) const {
  const auto& index = index_->tensors;
  LoadPlan plan;
  plan.by_shard.resize(metadata_.shards.size());
  std::set<std::string_view> seen;
  for (const TensorTarget& target : wanted) {
    const bool is_first = seen.insert(target.info.name).second;
    const auto there = index.find(target.info.name);
    if (there == index.end()) {
      if (is_first) plan.report.missing.push_back(target.info.name);
      plan.left.push_back(target);
      continue;
    }
    if (auto wrong = mismatch(target.info, there->second.all.front().tensor->info)) {
      if (is_first) plan.report.mismatched.push_back(*std::move(wrong));
      plan.left.push_back(target);
      continue;
    }
    if (is_first) plan.report.loaded.push_back(target.info.name);
    if (!target.data.empty()) plan.filled.push_back(target.data.data());
    for (const Place& place : there->second.near(target.info.slice)) add_copies(place, target, plan);
  }
  for (const auto& [name, places] : index)
    if (!seen.contains(name)) plan.report.unexpected.emplace_back(name);
  sort_copies(plan);
  return plan;
}

LoadPlan LoadPlanner::plan_known(std::span<const TensorTarget> wanted) const {
  LoadPlan plan;
  plan.by_shard.resize(metadata_.shards.size());
  for (const TensorTarget& target : wanted) {
    const Places& places = index_->tensors.at(target.info.name);
    for (const Place& place : places.near(target.info.slice)) add_copies(place, target, plan);
  }
  sort_copies(plan);
  return plan;
}

Result<std::uint64_t> read_planned(Storage& storage, const CheckpointMetadata& metadata, const LoadPlan& plan,
                                   const ReadOptions& options) {
  std::uint64_t all = 0;
  for (std::size_t shard = 0; shard < plan.by_shard.size(); ++shard) {
    if (plan.by_shard[shard].empty()) continue;
    auto bytes = read_shard(storage, metadata.shards[shard], plan.by_shard[shard], options);
    if (!bytes) return bytes;
    all += *bytes;
  }
  return all;
}

}  // namespace baton::checkpoint
