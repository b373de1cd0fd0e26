// Waits for tasks to end and prints what became of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/complaint.h"
#include "client/client.h"

namespace baton::cli {

// Results go to standard output in the order of `tasks`, each as soon as it is its turn; what did not end
// well is told on standard error. Returns the exit code: of the worst of them.
int print_ends(client::Client& client, const std::vector<std::string>& tasks, std::optional<Duration> within,
               Format format);

}  // namespace baton::cli
