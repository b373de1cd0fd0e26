// `baton token`: a new token, and the line about it for the server's file.
#pragma once

#include <string>

namespace baton::cli {

struct TokenOptions {
  std::string name;
  std::string allowed = "default=all";
  bool json = false;
};

int run_token(const TokenOptions& options);

class CommandLine;
void add_token_command(CommandLine& line);

}  // namespace baton::cli
