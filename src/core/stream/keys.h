// A name that belongs to an id in a scope, as one key of a table.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "core/ids.h"
#include "stream/uuid.h"

namespace baton::core::streams {

inline std::string scoped_key(Slot scope, const stream::Uuid& id, std::string_view name) {
  std::string key(sizeof scope, '\0');
  store(reinterpret_cast<std::byte*>(key.data()), scope);
  key.append(text_of(id.bytes)).append(name);
  return key;
}

}  // namespace baton::core::streams
