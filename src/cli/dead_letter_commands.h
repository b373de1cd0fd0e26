// baton stream dead list, show, replay, purge.
#pragma once

#include "cli/database.h"
#include "cli/stream_commands.h"

namespace baton::cli {

Status dead_list(Database& database, const StreamOptions& options);
Status dead_show(Database& database, const StreamOptions& options);
Status dead_replay(Database& database, const StreamOptions& options);
Status dead_purge(Database& database, const StreamOptions& options);

}  // namespace baton::cli
