// `baton worker`: runs modules of pipelines for masters elsewhere.
#pragma once

namespace baton::cli {

class CommandLine;
void add_worker_command(CommandLine& line);

}  // namespace baton::cli
