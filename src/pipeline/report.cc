#include "pipeline/report.h"

#include <algorithm>

namespace baton::pipeline {

std::string_view word(RunOutcome outcome) {
  static constexpr std::string_view kWords[] = {"succeeded", "failed", "cancelled", "coordination lost",
                                                "refused"};
  return kWords[static_cast<std::size_t>(outcome)];
}

int exit_code(RunOutcome outcome) {
  switch (outcome) {
    case RunOutcome::succeeded: return 0;
    case RunOutcome::failed: return 1;
    case RunOutcome::cancelled: return 3;
    case RunOutcome::coordination_lost: return 4;
    case RunOutcome::refused: return kExitInvalid;
  }
  return 5;
}

Duration queue_wait(const ModuleReport& report) {
  return report.began_at > report.ready_at ? report.began_at - report.ready_at : Duration{};
}

std::string why(const ModuleReport& one) {
  if (one.status == ModuleStatus::cancelled && !one.reason.empty()) return one.reason;
  if (one.failure.kind != FailureKind::none) return one.failure.message;
  if (!one.reason.empty() || one.cache.empty()) return one.reason;
  return (one.status == ModuleStatus::cached ? "" : "not cached: ") + one.cache;
}

std::vector<const ModuleReport*> worst_first(const RunReport& report) {
  std::vector<const ModuleReport*> all;
  for (const ModuleReport& one : report.modules) all.push_back(&one);
  std::ranges::stable_sort(all, {}, [](const ModuleReport* one) {
    if (one->status == ModuleStatus::failed || one->status == ModuleStatus::timed_out) return 0;
    return spoils_run(one->status) ? 1 : 2;
  });
  return all;
}

}  // namespace baton::pipeline
