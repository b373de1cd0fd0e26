#include "pipeline/report.h"

namespace baton::pipeline {

std::string_view word(RunOutcome outcome) {
  static constexpr std::string_view kWords[] = {"succeeded", "failed", "cancelled", "coordination lost"};
  return kWords[static_cast<std::size_t>(outcome)];
}

int exit_code(RunOutcome outcome) {
  switch (outcome) {
    case RunOutcome::succeeded: return 0;
    case RunOutcome::failed: return 1;
    case RunOutcome::cancelled: return 3;
    case RunOutcome::coordination_lost: return 4;
  }
  return 5;
}

}  // namespace baton::pipeline
