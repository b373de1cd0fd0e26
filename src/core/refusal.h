// Refusals that say of what: which task, how large, and what the limit is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/decision.h"
#include "core/names.h"
#include "core/request.h"

namespace baton::core {

// As it was named. What is not a name is no key either, and may be long.
inline std::string to_text(const TaskRef& task) {
  if (task.key.empty()) return to_text(task.id);
  return "key:" + (is_name(task.key) ? task.key : std::string("…"));
}

inline Reject no_such(const TaskRef& task) { return {Errc::not_found, "no such task: " + to_text(task)}; }

inline Reject too_large(std::string_view what, std::size_t bytes, std::size_t limit) {
  return {Errc::too_large, "the " + std::string(what) + " has " + std::to_string(bytes) +
                               " bytes; the limit is " + std::to_string(limit)};
}

inline Reject full(std::string_view what, std::uint64_t limit) {
  return {Errc::exhausted, std::string(what) + ": " + std::to_string(limit)};
}

}  // namespace baton::core
