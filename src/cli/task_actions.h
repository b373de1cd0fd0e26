// baton task cancel and requeue: tasks that are named, or all of a queue and state up to a limit.
#pragma once

#include "cli/task_commands.h"

namespace baton::cli {

int task_cancel(client::Client& client, const TaskCommandOptions& options);
int task_requeue(client::Client& client, const TaskCommandOptions& options);

// What makes no sense together.
std::optional<std::string> contradiction(const TaskCommandOptions& options);

}  // namespace baton::cli
