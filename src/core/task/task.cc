#include "core/task/task.h"

#include "base/check.h"

namespace baton::core {

std::string_view name_of(TaskState state) {
  switch (state) {
    case TaskState::waiting: return "waiting";
    case TaskState::leased: return "leased";
    case TaskState::completed: return "completed";
    case TaskState::failed: return "failed";
    case TaskState::dead: return "dead";
  }
  BATON_CHECK(false && "unknown task state");
}

std::string_view name_of(Ended how) {
  switch (how) {
    case Ended::expired: return "expired";
    case Ended::completed: return "completed";
    case Ended::retried: return "retried";
    case Ended::failed: return "failed";
    case Ended::released: return "released";
    case Ended::dead: return "dead";
  }
  BATON_CHECK(false && "unknown ending");
}

std::string_view name_of(DeadReason why) {
  switch (why) {
    case DeadReason::none: return "none";
    case DeadReason::cancelled: return "cancelled";
    case DeadReason::attempts_exhausted: return "attempts_exhausted";
  }
  BATON_CHECK(false && "unknown reason");
}

}  // namespace baton::core
