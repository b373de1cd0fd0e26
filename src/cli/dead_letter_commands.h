// baton stream dead list, show, replay, purge.
#pragma once

#include "cli/stream_commands.h"
#include "cli/stream_source.h"

namespace baton::cli {

Status dead_list(StreamSource& source, const StreamOptions& options);
Status dead_show(StreamSource& source, const StreamOptions& options);
Status dead_replay(StreamSource& source, const StreamOptions& options);
Status dead_purge(StreamSource& source, const StreamOptions& options);

}  // namespace baton::cli
