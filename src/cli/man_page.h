// `baton man`: the man page, made from the commands themselves.
#pragma once

#include <string>

#include "cli/command_description.h"

namespace baton::cli {

std::string man_page(const CommandDescription& baton);

class CommandLine;
void add_document_commands(CommandLine& line);  // completion and man

}  // namespace baton::cli
