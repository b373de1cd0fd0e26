// baton stream migrate, status, lag, why, and dead list, show, replay, purge.
#pragma once

namespace baton::cli {

class CommandLine;
void add_stream_commands(CommandLine& line);

}  // namespace baton::cli
