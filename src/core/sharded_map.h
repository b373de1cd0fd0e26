// A hash map in shards, so that growing moves a few thousandths of what is in it at a time. For a .cc: it
// brings the whole map with it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include <boost/unordered/unordered_flat_map.hpp>

#include "base/check.h"
#include "core/ids.h"

namespace baton::core {

template <class Key, class Hash>
class ShardedMap {
 public:
  Slot find(const auto& key) const {
    const Shard& shard = of(key);
    const auto found = shard.find(key);
    return found == shard.end() ? 0 : found->second;
  }
  void insert(const auto& key, Slot slot) {
    if (!many_ && size_ == kFew) {
      many_ = std::make_unique<std::array<Shard, kMany>>();
      for (auto& [known, at] : few_) shard_of(known).emplace(known, at);
      few_ = {};
    }
    const bool added = shard_of(key).emplace(Key(key), slot).second;
    BATON_CHECK(added);
    ++size_;
  }
  void erase(const auto& key) {
    Shard& shard = shard_of(key);
    const auto found = shard.find(key);
    BATON_CHECK(found != shard.end());
    shard.erase(found);
    --size_;
  }
  std::size_t size() const { return size_; }

 private:
  using Shard = boost::unordered_flat_map<Key, Slot, Hash, std::equal_to<>>;
  // Made when first used: most maps stay small, and a state must be cheap to make.
  static constexpr std::size_t kFew = 1024;
  static constexpr std::size_t kMany = 8192;

  // The last shards get twice as many names as the first, with every share between: so each doubles at a
  // time of its own, where equal shares would all do so in the same few turns. The curve is log2(1 + u),
  // nearly; u is made of bits in the middle of the hash, for the maps themselves use both of its ends.
  const Shard& of(const auto& key) const {
    if (!many_) return few_;
    constexpr std::uint64_t kOne = 1 << 24;
    const std::uint64_t u = Hash{}(key) >> 8 & (kOne - 1);
    return (*many_)[u * (4 * kOne - u) / 3 * kMany / (kOne * kOne)];
  }
  Shard& shard_of(const auto& key) { return const_cast<Shard&>(of(key)); }

  Shard few_;
  std::unique_ptr<std::array<Shard, kMany>> many_;
  std::size_t size_ = 0;
};

}  // namespace baton::core
