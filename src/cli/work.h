// `baton work`: runs a command for each task.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/connection.h"

namespace baton::cli {

// EX_DATAERR: a command that exits with it says that the task itself is wrong, and no repetition mends that.
inline constexpr int kExitHopelessTask = 65;

struct WorkOptions {
  Connection connection;
  std::vector<std::string> queues;
  std::vector<std::string> command;
  std::string name;
  std::uint64_t jobs = 1;
  Duration ttl = seconds(30);
  Duration grace = seconds(5);
  std::vector<std::string> capabilities;
  bool once = false;
  bool drain = false;
  bool json = false;
};

int run_work(const WorkOptions& options);

class CommandLine;
void add_work_command(CommandLine& line);

}  // namespace baton::cli
