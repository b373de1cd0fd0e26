// `baton completion`: what bash, zsh and fish need to complete command lines, made from the commands
// themselves.
#pragma once

#include <string>

#include "cli/command_description.h"

namespace baton::cli {

std::string bash_completion(const CommandDescription& baton);
std::string zsh_completion(const CommandDescription& baton);
std::string fish_completion(const CommandDescription& baton);

}  // namespace baton::cli
