// baton stats, baton worker list: how the coordinator is doing, and who works for it.
#pragma once

#include <string>

#include "cli/connection.h"
#include "cli/json_object.h"
#include "client/types.h"

namespace baton::cli {

// As the protocol has them.
JsonObject json_of(const client::Stats& stats);
JsonObject json_of(const client::WorkerView& view);

class Table;
Table table_of(const std::vector<client::WorkerView>& workers);

class CommandLine;
void add_stats_commands(CommandLine& line);

}  // namespace baton::cli
