// Names with what they belong to, as one key of a table.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "core/ids.h"
#include "stream/uuid.h"

namespace baton::core::streams {

// Services have longer names than queues.
inline std::string service_key(std::string_view ns, std::string_view service) {
  return std::string(ns).append(" ").append(service);
}

inline std::string scoped_key(Slot scope, const stream::Uuid& id, std::string_view name) {
  std::string key(sizeof scope, '\0');
  store(reinterpret_cast<std::byte*>(key.data()), scope);
  key.append(text_of(id.bytes)).append(name);
  return key;
}

}  // namespace baton::core::streams
