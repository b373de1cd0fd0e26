// Runs a program to its end and keeps what it said.
#pragma once

#include <string>
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

}  // namespace baton::cli
