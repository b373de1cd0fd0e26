// `baton pipeline`: looks at pipeline files, and at runs that were.
#pragma once

namespace baton::cli {

class CommandLine;
void add_pipeline_commands(CommandLine& line);

}  // namespace baton::cli
