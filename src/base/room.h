// Room that was needed once.
#pragma once

#include <cstddef>

namespace baton {

// Gives the room of a string or vector back if it is more than so many bytes, and next to nothing is in it.
template <class Container>
void give_back_room(Container& container, std::size_t kept_bytes) {
  const std::size_t bytes = container.capacity() * sizeof(typename Container::value_type);
  if (bytes > kept_bytes && container.size() < container.capacity() / 4) container.shrink_to_fit();
}

}  // namespace baton
