#pragma once

#include <cstddef>

namespace baton::checkpoint {

// As memcpy, for a destination that is larger than the processor's cache: it is not read in first just to be
// written over, which would be half as much traffic again.
void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes);

}  // namespace baton::checkpoint
