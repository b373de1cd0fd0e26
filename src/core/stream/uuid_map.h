// Finds a slot by an id of 16 bytes within a scope. Sharded as NameMap is.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>

#include "core/ids.h"
#include "stream/uuid.h"

namespace baton::core {

class UuidMap {
 public:
  UuidMap();
  ~UuidMap();
  UuidMap(UuidMap&&) noexcept;
  UuidMap& operator=(UuidMap&&) noexcept;

  Slot find(std::uint32_t scope, const stream::Uuid& id) const;         // 0 if there is none
  void insert(std::uint32_t scope, const stream::Uuid& id, Slot slot);  // which is not there
  void erase(std::uint32_t scope, const stream::Uuid& id);              // which is there
  std::size_t size() const;

 private:
  struct Shards;
  std::unique_ptr<Shards> shards_;
};

}  // namespace baton::core
