// baton stats, baton worker list: how the coordinator is doing, and who works for it.
#pragma once

#include <string>

#include "cli/connection.h"
#include "client/types.h"

namespace baton::cli {

class Table;
Table table_of(const std::vector<client::WorkerView>& workers);

class CommandLine;
void add_stats_commands(CommandLine& line);

}  // namespace baton::cli
