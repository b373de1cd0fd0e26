// `baton top`: queues, workers and the log, drawn again every second.
#pragma once

#include "cli/connection.h"

namespace baton::cli {

struct TopOptions {
  Connection connection;
  Duration every = seconds(1);
  bool once = false;
  bool json = false;
};

int run_top(const TopOptions& options);

class CommandLine;
void add_top_command(CommandLine& line);

}  // namespace baton::cli
