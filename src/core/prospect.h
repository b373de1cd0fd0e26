// Whether a worker who asks a queue for a task may get one, now or when.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/state.h"

namespace baton::core {

struct Prospect {
  // What a worker has to be able to do for one of those that are eligible, canonical; none: there is no task.
  std::vector<std::string_view> needs;
  std::optional<Instant> next;  // when time alone will make another one so

  bool is_ready_for(std::string_view capabilities) const;  // of a worker, canonical
};

Prospect prospect(const State& state, std::string_view ns, std::string_view queue, Instant now);

}  // namespace baton::core
