// baton queue list, pause, resume, purge.
#pragma once

#include <string>
#include <vector>

#include "cli/connection.h"
#include "cli/json_object.h"
#include "client/types.h"

namespace baton::cli {

struct QueueCommandOptions {
  Connection connection;
  std::vector<std::string> queues;
  bool json = false;
};

JsonObject json_of(const client::QueueView& view);  // as the protocol has it

int queue_list(client::Client& client, const QueueCommandOptions& options);
int queue_pause(client::Client& client, const QueueCommandOptions& options);
int queue_resume(client::Client& client, const QueueCommandOptions& options);
int queue_purge(client::Client& client, const QueueCommandOptions& options);

class CommandLine;
void add_queue_commands(CommandLine& line);

}  // namespace baton::cli
