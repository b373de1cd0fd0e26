// Where a module of a run stands, and how it ended.
//
//   waiting -> ready -> queued -> running -> succeeded | failed | timed_out | skipped | cancelled
//      |         |                  |
//      |         '-> waiting_for_capability: nobody there has what it needs
//      '-> dependency_failed | skipped | cancelled, without having run
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "pipeline/codec.h"

namespace baton::pipeline {

enum class ModuleStatus : std::uint8_t {
  waiting,                 // for what it needs
  ready,                   // may begin as soon as there is a free place
  waiting_for_capability,  // ready, and no worker has what it requires
  queued,                  // handed to the coordinator
  running,
  // from here on final
  succeeded,
  cached,           // its inputs are those of an earlier run, and so is its result
  restored,         // finished before the master was started again, or in the run that is repeated
  ignored_failure,  // it failed, and was allowed to
  failed,
  timed_out,
  skipped,
  cancelled,
  dependency_failed,
};
inline constexpr ModuleStatus kLastModuleStatus = ModuleStatus::dependency_failed;
constexpr ModuleStatus baton_last(ModuleStatus) { return kLastModuleStatus; }

std::string_view word(ModuleStatus status);
std::string_view ending(ModuleStatus status);  // of a sentence about it: "was skipped"
std::optional<ModuleStatus> status_of(std::string_view word);
constexpr bool is_final(ModuleStatus status) { return status >= ModuleStatus::succeeded; }
constexpr bool has_value(ModuleStatus status) {
  return status == ModuleStatus::succeeded || status == ModuleStatus::cached ||
         status == ModuleStatus::restored;
}
// Whether the run has failed because of it.
constexpr bool spoils_run(ModuleStatus status) {
  return status == ModuleStatus::failed || status == ModuleStatus::timed_out ||
         status == ModuleStatus::cancelled || status == ModuleStatus::dependency_failed;
}

enum class FailureKind : std::uint8_t {
  none,
  exit_code,               // a command ended with another code than 0
  exception,               // the body threw
  timeout,                 // it took too long
  encode,                  // its result cannot be written
  decode,                  // what it needs cannot be read
  worker_lost,             // whoever worked on it fell silent, and nobody may try again
  cancelled,               // the run was, or the module
  dependency_unavailable,  // the result of what it needs is gone
  artifact,                // one could not be stored, fetched, or is not what it was
  capability,              // nobody has what it requires
  unknown_module,          // the worker does not know it
};
inline constexpr FailureKind kLastFailureKind = FailureKind::unknown_module;
constexpr FailureKind baton_last(FailureKind) { return kLastFailureKind; }

std::string_view word(FailureKind kind);

struct ModuleFailure {
  FailureKind kind = FailureKind::none;
  std::string message;
  std::string detail;  // the last of what it said
  int exit_code = 0;
  friend bool operator==(const ModuleFailure&, const ModuleFailure&) = default;
};
BATON_FIELDS(ModuleFailure, kind, message, detail, exit_code)

}  // namespace baton::pipeline
