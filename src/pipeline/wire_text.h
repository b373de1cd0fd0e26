// Anything with a codec as JSON text, and back.
#pragma once

#include <string>
#include <string_view>

#include "pipeline/codec.h"

namespace baton::pipeline {

template <Encodable T>
std::string to_text(const T& object) {
  return to_json(Codec<T>::encode(object));
}
template <Encodable T>
Result<T> from_text(std::string_view text) {
  auto value = from_json(text);
  if (!value) return std::unexpected(value.error());
  return Codec<T>::decode(*value);
}

}  // namespace baton::pipeline
