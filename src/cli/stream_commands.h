// baton stream migrate, maintain, status, metrics, lag, partitions, why; the dead letters have a file of
// their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/connection.h"
#include "stream/work_coordinator.h"

namespace baton::cli {

struct StreamOptions {
  Connection connection;
  std::string database;  // instead of a coordinator
  bool json = false;
  std::string message;               // why
  std::uint64_t count = 20;          // lag, partitions
  Duration stale = stream::kStale;   // status, metrics, partitions, why
  std::vector<std::string> letters;  // dead show, replay, purge
  bool all = false;                  // dead replay, purge
  Duration older_than;               // dead purge
};

class CommandLine;
void add_stream_commands(CommandLine& line);

}  // namespace baton::cli
