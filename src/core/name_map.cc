#include "core/name_map.h"

#include <string>

#include "base/hash.h"
#include "core/sharded_map.h"

namespace baton::core {
namespace {

struct Hash {
  using is_transparent = void;
  using is_avalanching = void;
  std::size_t operator()(std::string_view name) const { return content_hash(bytes_of(name)); }
};

}  // namespace

struct NameMap::Shards : ShardedMap<std::string, Hash> {};

NameMap::NameMap() : shards_(std::make_unique<Shards>()) {}
NameMap::~NameMap() = default;
NameMap::NameMap(NameMap&&) noexcept = default;
NameMap& NameMap::operator=(NameMap&&) noexcept = default;

std::size_t NameMap::size() const { return shards_->size(); }
Slot NameMap::find(std::string_view name) const { return shards_->find(name); }
void NameMap::insert(std::string_view name, Slot slot) { shards_->insert(name, slot); }
void NameMap::erase(std::string_view name) { shards_->erase(name); }

}  // namespace baton::core
