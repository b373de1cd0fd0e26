#include "cli/checkpoint_actions.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/checkpoint_validator.h"
#include "checkpoint/difference.h"
#include "cli/checkpoint_bar.h"
#include "cli/checkpoint_report.h"
#include "cli/quantities.h"
#include "cli/table.h"

namespace baton::cli {

using namespace checkpoint;

namespace {

constexpr int kExitDifferent = 1;  // as of diff
constexpr int kExitDamaged = 2;

int verify_one(Storage& storage, const Attempt& attempt, const CheckpointOptions& options) {
  ValidationResult result;
  if (attempt.trouble) result.errors.push_back(attempt.trouble->message);
  if (attempt.metadata) {
    CheckpointBar bar(file_bytes(*attempt.metadata));
    result = CheckpointValidator::verify(storage, *attempt.metadata, {.progress = bar.shown()});
  }
  if (options.json) {
    fmt::print("{}\n", JsonObject()
                           .text("checkpoint", to_text(attempt.id))
                           .boolean("whole", result.is_valid())
                           .literal("errors", json_list(result.errors))
                           .literal("warnings", json_list(result.warnings))
                           .whole());
  } else {
    fmt::print("{}: {}\n", to_text(attempt.id), result.is_valid() ? "whole" : "damaged");
    for (const std::string& error : result.errors) fmt::print("  {}\n", printable(error, 500));
    for (const std::string& warning : result.warnings) fmt::print("  {}\n", printable(warning, 500));
  }
  return result.is_valid() ? 0 : kExitDamaged;
}

}  // namespace

int complain(const Error& error, const CheckpointOptions& options) {
  Error said = error;
  const bool is_checkpoint = !options.name.empty();
  if (said.code == Errc::corrupt && is_checkpoint)
    said.message += fmt::format("; baton checkpoint verify {} tells which ones are whole", options.directory);
  const int exit_code = complain(said, options.format());
  if (error.code == Errc::corrupt) return kExitDamaged;
  return exit_code == kExitRefused ? options.exit_if_refused : exit_code;
}

int list_checkpoints(Storage& storage, const CheckpointOptions& options) {
  const auto attempts = list_attempts(storage);
  if (!attempts) return complain(attempts.error(), options);
  print_attempts(*attempts, options.format());
  const auto unreadable = std::ranges::count(*attempts, AttemptState::unreadable, &Attempt::state);
  return unreadable == 0 ? 0 : kExitDamaged;
}

int inspect_checkpoint(Storage& storage, const CheckpointOptions& options) {
  const auto metadata = find_checkpoint(storage, options.name);
  if (!metadata) return complain(metadata.error(), options);
  print_metadata(*metadata, options.format());
  return 0;
}

int verify_checkpoints(Storage& storage, const CheckpointOptions& options) {
  auto search = CheckpointSearch::begin(storage, options.maybe_name.value_or("latest"));
  if (!search) return complain(search.error(), options);
  auto attempt = search->next();
  if (!attempt) return complain(search->nothing_found(), options);
  int exit_code = 0;
  for (; attempt; attempt = search->next()) {
    exit_code = std::max(exit_code, verify_one(storage, *attempt, options));
    if (options.maybe_name) break;  // the newest of that name; without one, all
  }
  return exit_code;
}

int diff_checkpoints(Storage& storage, const CheckpointOptions& options) {
  const auto first = find_checkpoint(storage, options.name);
  if (!first) return complain(first.error(), options);
  const auto second = find_checkpoint(storage, options.other);
  if (!second) return complain(second.error(), options);
  CheckpointBar bar(first->tensor_bytes());
  const auto difference = compare(storage, *first, *second, bar.shown());
  bar.clear();
  if (!difference) return complain(difference.error(), options);
  print_difference(*difference, options.format());
  return difference->is_empty() ? 0 : kExitDifferent;
}

}  // namespace baton::cli
