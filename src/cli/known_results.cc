#include "cli/known_results.h"

#include <utility>

#include "pipeline/site.h"

namespace baton::cli {
namespace {

using pipeline::FailureKind;
using pipeline::JournalLine;
using pipeline::ModuleFailure;
using pipeline::ModuleStatus;

bool may_be_begun_twice(const pipeline::Graph& graph, const std::string& module) {
  const pipeline::NodeIndex* node = graph.find(module);
  return !node || graph[*node].spec->idempotent;
}

// One that was cancelled may be begun again, unless it had been and may not be twice.
bool has_failed(const JournalLine& line, const pipeline::Graph& graph) {
  if (!line.failure) return false;
  return line.status != word(ModuleStatus::cancelled) ||
         (line.tries.value_or(0) > 0 && !may_be_begun_twice(graph, line.module));
}

bool was_lost_with_master(const JournalLine& line, const pipeline::Graph& graph) {
  return line.status == word(ModuleStatus::running) && line.worker == pipeline::Site().name &&
         !may_be_begun_twice(graph, line.module);
}

}  // namespace

std::map<std::string, pipeline::Restored> restorable(const std::vector<pipeline::JournalLine>& journal) {
  std::map<std::string, pipeline::Restored> all;
  for (const pipeline::JournalLine& line : journal) {
    const bool has_result =
        line.status == "succeeded" || line.status == "cached" || line.status == "restored";
    if (has_result && (line.blob || !line.value.empty()))
      all[line.module] = {.value = {line.value, line.blob}, .artifacts = line.artifacts};
  }
  return all;
}

std::map<std::string, pipeline::Restored> ended_before(const std::string& directory, const std::string& run,
                                                       const pipeline::Graph& graph) {
  const auto kept = pipeline::Records::kept(directory, run);
  if (!kept || kept->fingerprint != graph.fingerprint()) return {};
  const auto journal = pipeline::Records::journal(directory, run);
  std::map<std::string, pipeline::Restored> all = restorable(journal);
  if (pipeline::Records::report(directory, run)) return all;  // it was ended, and is begun again on purpose
  for (const JournalLine& line : journal) {
    if (has_failed(line, graph)) all[line.module].failure = line.failure;
  }
  for (const auto& [module, line] : pipeline::Records::under_way(directory, run)) {
    if (was_lost_with_master(line, graph))
      all[module].failure =
          ModuleFailure{.kind = FailureKind::worker_lost,
                        .message = "the master was killed while it ran, and it may not be begun twice"};
  }
  return all;
}

}  // namespace baton::cli
