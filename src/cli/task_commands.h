// baton task get, wait, list; cancel and requeue are in task_actions.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/connection.h"
#include "client/types.h"

namespace baton::cli {

struct TaskCommandOptions {
  Connection connection;
  std::vector<std::string> tasks;  // ids, or key: and a key
  client::TaskQuery query;
  std::uint64_t limit = 100;
  std::optional<Duration> within;
  std::string only;  // payload, result or reason
  std::string key;
  std::string actor;
  std::string note;
  bool all_queues = false;  // in place of one that is named
  bool dry_run = false;
  bool json = false;
};

int task_get(client::Client& client, const TaskCommandOptions& options);
int task_wait(client::Client& client, const TaskCommandOptions& options);
int task_list(client::Client& client, const TaskCommandOptions& options);

class CommandLine;
void add_task_commands(CommandLine& line);

}  // namespace baton::cli
