// A clock that only goes forward: for how long something took, not for what time it is.
#pragma once

#include <cstdint>

namespace baton::pipeline {

std::int64_t steady_ms();

}  // namespace baton::pipeline
