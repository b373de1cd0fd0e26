// Finds a slot by name. Sharded, so that growing moves a few thousandths of the names at a time.
#pragma once

#include <memory>
#include <string_view>

#include "core/ids.h"

namespace baton::core {

class NameMap {
 public:
  NameMap();
  ~NameMap();
  NameMap(NameMap&&) noexcept;
  NameMap& operator=(NameMap&&) noexcept;

  Slot find(std::string_view name) const;         // 0 if there is none
  void insert(std::string_view name, Slot slot);  // which is not there
  void erase(std::string_view name);              // which is there
  std::size_t size() const;

 private:
  struct Shards;
  std::unique_ptr<Shards> shards_;
};

}  // namespace baton::core
