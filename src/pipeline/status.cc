#include "pipeline/status.h"

namespace baton::pipeline {

namespace {

constexpr std::string_view kStatusWords[] = {"waiting",
                                             "ready",
                                             "waiting for capability",
                                             "queued",
                                             "running",
                                             "succeeded",
                                             "cached",
                                             "restored",
                                             "ignored failure",
                                             "failed",
                                             "timed out",
                                             "skipped",
                                             "cancelled",
                                             "dependency failed"};
static_assert(std::size(kStatusWords) == static_cast<std::size_t>(kLastModuleStatus) + 1);

}  // namespace

std::string_view word(ModuleStatus status) { return kStatusWords[static_cast<std::size_t>(status)]; }

std::string_view ending(ModuleStatus status) {
  switch (status) {
    case ModuleStatus::cached: return "was taken from an earlier run";
    case ModuleStatus::restored: return "had succeeded before";
    case ModuleStatus::ignored_failure: return "failed, as it may";
    case ModuleStatus::skipped: return "was skipped";
    case ModuleStatus::cancelled: return "was cancelled";
    case ModuleStatus::dependency_failed: return "did not run";
    default: return word(status);
  }
}

std::optional<ModuleStatus> status_of(std::string_view word) {
  for (std::size_t i = 0; i < std::size(kStatusWords); ++i) {
    if (kStatusWords[i] == word) return static_cast<ModuleStatus>(i);
  }
  return std::nullopt;
}

std::string_view word(FailureKind kind) {
  static constexpr std::string_view kWords[] = {"none",        "exit code",  "exception",
                                                "timeout",     "encode",     "decode",
                                                "worker lost", "cancelled",  "dependency unavailable",
                                                "artifact",    "capability", "unknown module"};
  static_assert(std::size(kWords) == static_cast<std::size_t>(kLastFailureKind) + 1);
  return kWords[static_cast<std::size_t>(kind)];
}

}  // namespace baton::pipeline
