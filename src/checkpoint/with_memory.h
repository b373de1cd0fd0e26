// A rank that runs out of memory has an error to tell like any other, and the others do not wait for it.
#pragma once

#include <new>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton::checkpoint {

// Is told even if there is no memory for the words.
inline Error out_of_memory(std::string_view to_do) noexcept {
  try {
    return {Errc::exhausted, "there is not enough memory to " + std::string(to_do), {}};
  } catch (const std::bad_alloc&) {
    return {Errc::exhausted, "out of memory", {}};  // so short that a string holds it by itself
  }
}

template <class Step>
auto with_memory(std::string_view to_do, const Step& step) -> decltype(step()) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return std::unexpected(out_of_memory(to_do));
  }
}

}  // namespace baton::checkpoint
