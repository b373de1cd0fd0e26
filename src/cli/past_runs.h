// `baton pipeline list`, `logs` and `why`: what is known of runs that were, and of those under way.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"

namespace baton::cli {

struct PastOptions {
  std::string folder = ".";
  std::string module;
  std::optional<std::string> run;
  bool json = false;
};

// The run that is meant: the one that was named, or the last.
Result<std::string> chosen_run(const PastOptions& options);

int list_runs(const PastOptions& options);
int show_log(const PastOptions& options);
int explain(const PastOptions& options);

}  // namespace baton::cli
