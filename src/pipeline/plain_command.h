// A script that is one plain command, which needs no shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton::pipeline {

// Its words, if a shell would do nothing with the script but run a program with them: no quotes, variables,
// patterns or redirections, and not a word that the shell knows itself. Empty: it is for the shell.
std::vector<std::string> plain_command(std::string_view script);

}  // namespace baton::pipeline
