#include "core/stream/uuid_map.h"

#include "base/hash.h"
#include "core/sharded_map.h"

namespace baton::core {
namespace {

struct Key {
  stream::Uuid id;
  std::uint32_t scope = 0;
  friend bool operator==(const Key&, const Key&) = default;
};

struct Hash {
  using is_avalanching = void;
  std::size_t operator()(const Key& key) const { return content_hash(key.id.bytes, key.scope); }
};

}  // namespace

struct UuidMap::Shards : ShardedMap<Key, Hash> {};

UuidMap::UuidMap() : shards_(std::make_unique<Shards>()) {}
UuidMap::~UuidMap() = default;
UuidMap::UuidMap(UuidMap&&) noexcept = default;
UuidMap& UuidMap::operator=(UuidMap&&) noexcept = default;

std::size_t UuidMap::size() const { return shards_->size(); }
Slot UuidMap::find(std::uint32_t scope, const stream::Uuid& id) const {
  return shards_->find(Key{id, scope});
}
void UuidMap::insert(std::uint32_t scope, const stream::Uuid& id, Slot slot) {
  shards_->insert(Key{id, scope}, slot);
}
void UuidMap::erase(std::uint32_t scope, const stream::Uuid& id) { shards_->erase(Key{id, scope}); }

}  // namespace baton::core
