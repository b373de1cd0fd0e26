#include "pipeline/packing.h"

#include <algorithm>
#include <utility>

namespace baton::pipeline {
namespace {

constexpr std::size_t kLogInline = 64 << 10;                  // of a log that cannot be stored, the end
constexpr std::size_t kReasonEnd = kInlineBytesMax / 2 - 64;  // of each end of a long reason

}  // namespace

std::optional<ModuleFailure> unpack(const Graph& graph, const ModuleAssignment& assignment,
                                    ModuleOrder& order) {
  std::size_t next = 0;
  for (const GraphNeed& need : order.node->needs) {
    Input& input = order.inputs.emplace_back();
    for (const NodeIndex other : need.on) {
      if (next == assignment.dependencies.size() || assignment.dependencies[next].module != graph[other].id) {
        return ModuleFailure{.kind = FailureKind::dependency_unavailable,
                             .message = "the assignment lacks the result of " + graph[other].id};
      }
      const DependencyResult& dependency = assignment.dependencies[next++];
      Settlement& one = input.emplace_back();
      one = {.module = dependency.module,
             .status = dependency.status,
             .failure = dependency.failure.value_or(ModuleFailure{}),
             .skipped_because = dependency.skipped_because};
      if (graph[other].target) one.target = graph[other].target->name;
      const ResultType& type = graph[other].spec->result;
      if (!has_value(dependency.status) || !type.travels()) continue;
      if (dependency.blob) {
        order.large.push_back({order.inputs.size() - 1, input.size() - 1, &type, *dependency.blob});
        continue;
      }
      auto value = type.decode(dependency.value);
      if (!value)
        return ModuleFailure{
            .kind = FailureKind::decode,
            .message = "the result of " + dependency.module + " cannot be read: " + value.error().message};
      one.value = std::move(*value);
    }
  }
  return std::nullopt;
}

std::string in_bounds(std::string reason) {
  if (reason.size() <= kInlineBytesMax) return reason;
  const auto is_within_character = [&](std::size_t at) {
    return at < reason.size() && (static_cast<unsigned char>(reason[at]) & 0xC0) == 0x80;
  };
  std::size_t begin = kReasonEnd, end = reason.size() - kReasonEnd;
  while (begin > 0 && is_within_character(begin)) --begin;
  while (is_within_character(end)) ++end;
  reason.replace(begin, end - begin, " [… " + std::to_string(end - begin) + " bytes left out …] ");
  return reason;
}

ModuleFailure in_bounds(ModuleFailure failure) {
  failure.message = in_bounds(std::move(failure.message));
  return failure;
}

SerializedModuleResult packed(SerializedModuleResult result, const ModuleResult& ended, Duration took) {
  result.status = ended.status;
  result.skipped_because = in_bounds(ended.skipped_because);
  result.tries = ended.tries;
  result.took = took;
  result.transfer = ended.transfer;
  if (ended.failure.kind != FailureKind::none) result.failure = in_bounds(ended.failure);
  result.artifacts = ended.artifacts;
  if (!ended.carried) return result;
  result.value = ended.carried->text;
  result.blob = ended.carried->blob;
  return result;
}

void attach_log(SerializedModuleResult& result, std::string log, BlobStore* store) {
  result.log = std::move(log);
  if (result.log.size() <= kInlineBytesMax) return;
  if (store != nullptr) {
    if (auto blob = store->put(bytes_of_text(result.log), {})) {
      result.log_blob = std::move(*blob);
      result.log.clear();
    }
  }
  if (result.log.size() <= kLogInline) return;
  const std::size_t cut =
      std::min(result.log.find('\n', result.log.size() - kLogInline), result.log.size() - 1) + 1;
  result.log_from = static_cast<std::uint64_t>(
      std::count(result.log.begin(), result.log.begin() + static_cast<std::ptrdiff_t>(cut), '\n'));
  result.log.erase(0, cut);
}

}  // namespace baton::pipeline
