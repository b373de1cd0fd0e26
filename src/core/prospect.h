// Whether a worker who asks a queue for a task may get one, now or when.
#pragma once

#include <optional>
#include <string_view>

#include "core/state.h"

namespace baton::core {

struct Prospect {
  bool ready = false;           // a task is eligible, though perhaps not for everyone
  std::optional<Instant> next;  // when time alone will make another one so
};

Prospect prospect(const State& state, std::string_view ns, std::string_view queue, Instant now);

}  // namespace baton::core
