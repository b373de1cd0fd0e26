#include "cli/known_results.h"

#include <algorithm>
#include <set>
#include <utility>

#include "pipeline/own_results.h"
#include "pipeline/site.h"

namespace baton::cli {
namespace {

using pipeline::JournalLine;
using pipeline::ModuleStatus;

bool may_be_begun_twice(const pipeline::Graph& graph, const std::string& module) {
  const pipeline::NodeIndex* node = graph.find(module);
  return !node || graph[*node].spec->idempotent;
}

// What nobody can tell the end of, or has lost what it made, may have been.
bool was_begun(const JournalLine& line) {
  return line.tries.value_or(0) > 0 || line.failure->kind == pipeline::FailureKind::worker_lost ||
         line.failure->kind == pipeline::FailureKind::artifact;
}

// One that was cancelled may be begun again, unless it had been and may not be twice.
bool has_failed(const JournalLine& line, const pipeline::Graph& graph) {
  if (!line.failure) return false;
  return line.status != word(ModuleStatus::cancelled) ||
         (was_begun(line) && !may_be_begun_twice(graph, line.module));
}

bool was_begun_by_master(const JournalLine& line) {
  return line.status == word(ModuleStatus::running) && line.worker == pipeline::Site().name;
}

// It was handed out somewhere else than where the run goes on, or that is gone.
pipeline::ModuleFailure lost_from_sight() {
  return {.kind = pipeline::FailureKind::worker_lost,
          .message =
              "an earlier master handed it out to a worker, and nobody who can be asked knows what became "
              "of it; it may not be begun twice"};
}

bool has_result(const JournalLine& line) {
  return line.status == word(ModuleStatus::succeeded) || line.status == word(ModuleStatus::cached) ||
         line.status == word(ModuleStatus::restored);
}

std::map<std::string, pipeline::Restored> succeeded(const std::vector<JournalLine>& journal) {
  std::map<std::string, pipeline::Restored> all;
  for (const JournalLine& line : journal) {
    if (has_result(line) && (line.blob || !line.value.empty()))
      all[line.module] = {.value = {line.value, line.blob}, .artifacts = line.artifacts};
  }
  return all;
}

pipeline::Restored failed(const JournalLine& line) {
  return {.value = {}, .artifacts = {}, .failure = line.failure, .tries = line.tries.value_or(0)};
}

// A run that is over is gone on with on purpose: what failed is begun again, and what comes behind it, but
// for what may not be begun twice.
std::map<std::string, pipeline::Restored> after_its_end(const std::vector<JournalLine>& journal,
                                                        const pipeline::Graph& graph) {
  std::map<std::string, pipeline::Restored> all = restorable(journal, graph), results = succeeded(journal);
  for (const JournalLine& line : journal) {
    if (may_be_begun_twice(graph, line.module)) continue;
    if (const auto result = results.find(line.module); result != results.end())
      all[line.module] = result->second;
    else if (line.failure && was_begun(line))
      all[line.module] = failed(line);
  }
  return all;
}

}  // namespace

std::map<std::string, pipeline::Restored> restorable(const std::vector<pipeline::JournalLine>& journal,
                                                     const pipeline::Graph& graph) {
  std::map<std::string, pipeline::Restored> all = succeeded(journal);
  std::set<std::string> repeated;
  for (const JournalLine& line : journal) {
    if (!has_result(line) && line.status != word(ModuleStatus::skipped)) repeated.insert(line.module);
  }
  for (const auto& [module, restored] : all) repeated.erase(module);
  for (const pipeline::NodeIndex node : graph.in_order()) {
    for (const pipeline::GraphNeed& need : graph[node].needs) {
      const bool again = std::ranges::any_of(
          need.on, [&](pipeline::NodeIndex other) { return repeated.contains(graph[other].id); });
      if (!again) continue;
      repeated.insert(graph[node].id);
      all.erase(graph[node].id);
    }
  }
  return all;
}

std::map<std::string, pipeline::Restored> ended_before(const std::string& directory, const std::string& run,
                                                       const pipeline::Graph& graph) {
  const auto kept = pipeline::Records::kept(directory, run);
  if (!kept || kept->fingerprint != graph.fingerprint()) return {};
  const auto journal = pipeline::Records::journal(directory, run);
  if (pipeline::Records::report(directory, run)) return after_its_end(journal, graph);
  std::map<std::string, pipeline::Restored> all = succeeded(journal);
  for (const JournalLine& line : journal) {
    if (has_failed(line, graph)) all[line.module] = failed(line);
  }
  const auto handed_out = pipeline::Records::handed_out(directory, run);
  for (const auto& [module, line] : pipeline::Records::under_way(directory, run)) {
    if (handed_out.contains(module)) all.erase(module);  // it was begun since, in a run that had ended
    if (may_be_begun_twice(graph, module)) continue;
    if (was_begun_by_master(line))
      all[module].failure = pipeline::lost_with_master();
    else if (handed_out.contains(module))
      all[module].failure = lost_from_sight();
  }
  return all;
}

}  // namespace baton::cli
