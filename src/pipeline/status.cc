#include "pipeline/status.h"

namespace baton::pipeline {

std::string_view word(ModuleStatus status) {
  static constexpr std::string_view kWords[] = {"waiting",
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
  static_assert(std::size(kWords) == static_cast<std::size_t>(kLastModuleStatus) + 1);
  return kWords[static_cast<std::size_t>(status)];
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
