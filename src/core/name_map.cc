#include "core/name_map.h"

#include <array>
#include <memory>
#include <string>

#include <boost/unordered/unordered_flat_map.hpp>

#include "base/check.h"

namespace baton::core {
namespace {

struct Hash {
  using is_transparent = void;
  using is_avalanching = void;
  std::size_t operator()(std::string_view name) const { return content_hash(bytes_of(name)); }
};
using Shard = boost::unordered_flat_map<std::string, Slot, Hash, std::equal_to<>>;

}  // namespace

struct NameMap::Shards {
  // Made when first used: most maps stay small, and a state must be cheap to make.
  static constexpr std::size_t kFew = 1024;
  static constexpr std::size_t kMany = 8192;
  Shard few;
  std::unique_ptr<std::array<Shard, kMany>> many;
  std::size_t size = 0;

  // The last shards get twice as many names as the first, with every share between: so each doubles at a
  // time of its own, where equal shares would all do so in the same few turns. The curve is log2(1 + u),
  // nearly; u is made of bits in the middle of the hash, for the maps themselves use both of its ends.
  Shard& of(std::string_view name) {
    if (!many) return few;
    constexpr std::uint64_t kOne = 1 << 24;
    const std::uint64_t u = Hash{}(name) >> 8 & (kOne - 1);
    return (*many)[u * (4 * kOne - u) / 3 * kMany / (kOne * kOne)];
  }
};

NameMap::NameMap() : shards_(std::make_unique<Shards>()) {}
NameMap::~NameMap() = default;
NameMap::NameMap(NameMap&&) noexcept = default;
NameMap& NameMap::operator=(NameMap&&) noexcept = default;

std::size_t NameMap::size() const { return shards_->size; }

Slot NameMap::find(std::string_view name) const {
  const Shard& shard = shards_->of(name);
  const auto found = shard.find(name);
  return found == shard.end() ? 0 : found->second;
}

void NameMap::insert(std::string_view name, Slot slot) {
  if (!shards_->many && shards_->size == Shards::kFew) {
    shards_->many = std::make_unique<std::array<Shard, Shards::kMany>>();
    for (auto& [known, at] : shards_->few) shards_->of(known).emplace(known, at);
    shards_->few = {};
  }
  const bool added = shards_->of(name).emplace(std::string(name), slot).second;
  BATON_CHECK(added);
  ++shards_->size;
}

void NameMap::erase(std::string_view name) {
  Shard& shard = shards_->of(name);
  const auto found = shard.find(name);
  BATON_CHECK(found != shard.end());
  shard.erase(found);
  --shards_->size;
}

}  // namespace baton::core
