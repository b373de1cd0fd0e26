// `baton submit`: hands in one task, or one for each line of its input.
#pragma once

#include <optional>
#include <string>

#include "cli/connection.h"
#include "client/types.h"

namespace baton::cli {

struct SubmitOptions {
  Connection connection;
  client::Submit task;  // or what all tasks have in common
  std::optional<std::string> queue;
  std::optional<std::string> payload;
  std::string file;
  bool lines = false;
  bool ndjson = false;
  bool keyed = false;  // a line begins with its key
  std::string run;     // begins the keys of lines that have none; empty: one that was never used
  bool ids = false;
  bool wait = false;
  std::optional<Duration> within;  // none: as long as it takes
  bool json = false;
};

int run_submit(const SubmitOptions& options);

class CommandLine;
void add_submit_command(CommandLine& line);

}  // namespace baton::cli
