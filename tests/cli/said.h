// Runs a program to its end and keeps what it said.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/crash/child.h"

namespace baton::cli {

struct Said {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

inline Said run_program(std::vector<std::string> command) {
  const crash::Ran ran = crash::run({.command = std::move(command)});
  Said said{.exit_code = ran.exit.code, .errors = ran.errors};
  for (const std::string& line : ran.lines) said.output += line + "\n";
  return said;
}

inline Said baton(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), BATON_PROGRAM);
  return run_program(std::move(arguments));
}

inline bool begins(std::string_view text, std::string_view with) { return text.starts_with(with); }
inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

}  // namespace baton::cli
