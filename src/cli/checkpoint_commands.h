// baton checkpoint ls, inspect, verify, diff, export, import, prune, gc, pin, unpin, reshard, bench.
#pragma once

namespace baton::cli {

class CommandLine;
void add_checkpoint_commands(CommandLine& line);

}  // namespace baton::cli
