// Ranks as threads with state whose every element is known, so that a load can be compared with what it
// should have brought, however it was cut.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "checkpoint/checkpoint_coordinator.h"
#include "checkpoint/checkpoint_loader.h"
#include "checkpoint/in_process_collective.h"
#include "checkpoint/local_storage.h"
#include "checkpoint/rectangle.h"
#include "tests/temporary_directory.h"

namespace baton::checkpoint {

// The content of a slice: each element is a hash of the tensor's name, the version and its place in the
// whole.
inline Bytes content(const TensorInfo& info, std::uint64_t version) {
  Bytes bytes(slice_bytes(info));
  const std::uint64_t width = element_bytes(info.dtype);
  const std::uint64_t seed = content_hash(bytes_of(info.name), version);
  for_each_run(info.slice, whole(info.global_shape), info.slice, [&](const Run& run) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const std::uint64_t value = (seed ^ (run.from + i)) * 0x9e3779b97f4a7c15U;
      std::memcpy(bytes.data() + (run.to + i) * width, &value, width);
    }
  });
  return bytes;
}

// What one rank has in memory.
class State {
 public:
  State(std::vector<TensorInfo> infos, std::uint64_t version) : infos_(std::move(infos)) {
    for (const TensorInfo& info : infos_) bytes_.push_back(content(info, version));
  }
  // Room for it, filled with something else.
  explicit State(std::vector<TensorInfo> infos) : infos_(std::move(infos)) {
    for (const TensorInfo& info : infos_) bytes_.emplace_back(slice_bytes(info), std::byte{0xEE});
  }

  ShardData shard() const {
    ShardData data;
    data.tensors.reserve(infos_.size());
    for (std::size_t i = 0; i < infos_.size(); ++i) data.tensors.push_back({infos_[i], bytes_[i]});
    return data;
  }
  std::vector<TensorTarget> targets() {
    std::vector<TensorTarget> all;
    all.reserve(infos_.size());
    for (std::size_t i = 0; i < infos_.size(); ++i) all.push_back({infos_[i], bytes_[i]});
    return all;
  }
  friend bool operator==(const State&, const State&) = default;

 private:
  std::vector<TensorInfo> infos_;
  std::vector<Bytes> bytes_;
};

inline TensorInfo whole_tensor(const std::string& name, Dtype dtype, const Shape& shape) {
  return {name, dtype, shape, whole(shape)};
}
// Rows of the first dimension, as even as they go; with more ranks than rows some get none.
inline TensorInfo rows(const std::string& name, Dtype dtype, const Shape& shape, Rank rank, Rank world_size) {
  Rectangle slice = whole(shape);
  slice.offset[0] = shape[0] * rank / world_size;
  slice.shape[0] = shape[0] * (rank + 1) / world_size - slice.offset[0];
  return {name, dtype, shape, slice};
}
inline TensorInfo columns(const std::string& name, Dtype dtype, const Shape& shape, Rank rank,
                          Rank world_size) {
  Rectangle slice = whole(shape);
  slice.offset[1] = shape[1] * rank / world_size;
  slice.shape[1] = shape[1] * (rank + 1) / world_size - slice.offset[1];
  return {name, dtype, shape, slice};
}
// A model of a few tensors, cut in every way there is.
inline std::vector<TensorInfo> model(Rank rank, Rank world_size) {
  std::vector<TensorInfo> infos{
      rows("embedding", Dtype::bf16, {37, 64}, rank, world_size),
      columns("attention", Dtype::f32, {50, 70}, rank, world_size),
      whole_tensor("norm", Dtype::f64, {33}),
      whole_tensor("step", Dtype::i64, {}),
      whole_tensor("nothing", Dtype::u8, {0, 4}),
  };
  const Shape flat{5, 7, 11};  // as a flat optimizer state is cut: anywhere
  const std::uint64_t all = *elements_of(flat);
  for (const Rectangle& part : rectangles_of(flat, all * rank / world_size, all * (rank + 1) / world_size))
    infos.push_back({"moments", Dtype::f16, flat, part});
  return infos;
}

inline std::string said(const Status& status) {
  return status ? "fine" : std::string(word(status.error().code)) + ": " + status.error().message;
}
template <class T>
std::string said(const Result<T>& result) {
  return result ? "fine" : std::string(word(result.error().code)) + ": " + result.error().message;
}

inline void as_ranks(Rank world_size, const std::function<void(Collective&)>& what) {
  InProcessGroup group(world_size);
  std::vector<std::unique_ptr<Collective>> places;
  places.reserve(world_size);
  for (Rank rank = 0; rank < world_size; ++rank) places.push_back(*group.join(rank));
  std::vector<std::jthread> threads;
  threads.reserve(world_size);
  for (Rank rank = 0; rank < world_size; ++rank) threads.emplace_back([&, rank] { what(*places[rank]); });
}

using Cut = std::function<std::vector<TensorInfo>(Rank rank, Rank world_size)>;

// What each rank was told, by rank.
inline std::vector<std::string> save(Storage& storage, Rank world_size, std::uint64_t step,
                                     std::uint64_t version, const Cut& cut = model,
                                     SaveOptions options = {}) {
  std::vector<std::string> heard(world_size);
  options.training.step = step;
  as_ranks(world_size, [&](Collective& collective) {
    const State state(cut(collective.rank(), world_size), version);
    auto saved = CheckpointCoordinator(collective, storage)
                     .coordinate_save(
                         "step-" + std::to_string(step), [&]() -> Result<ShardData> { return state.shard(); },
                         options);
    heard[collective.rank()] = said(saved);
  });
  return heard;
}

// Without what a rank may add: that it could not write down, just then, that the attempt is given up.
inline std::vector<std::string> causes(std::vector<std::string> heard) {
  for (std::string& one : heard) one.resize(std::min(one.size(), one.find("; and that ")));
  return heard;
}

// What each rank was told, and "other bytes" if the content is not that of this version.
inline std::vector<std::string> load(Storage& storage, Rank world_size, const std::string& prefix,
                                     std::uint64_t version, const Cut& cut = model,
                                     const LoadOptions& options = {}) {
  std::vector<std::string> heard(world_size);
  as_ranks(world_size, [&](Collective& collective) {
    State state(cut(collective.rank(), world_size));
    const State expected(cut(collective.rank(), world_size), version);
    auto loaded = CheckpointLoader(collective, storage).coordinate_load(prefix, state.targets(), options);
    heard[collective.rank()] = loaded && state != expected ? "other bytes" : said(loaded);
  });
  return heard;
}

inline std::unique_ptr<LocalStorage> storage_in(const TemporaryDirectory& directory) {
  return *LocalStorage::open_directory(directory.path() + "/store");
}

}  // namespace baton::checkpoint
