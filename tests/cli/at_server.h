// The `baton` command against a server of its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/cli/said.h"
#include "tests/served.h"

namespace baton::cli {

class AtServer {
 public:
  explicit AtServer(std::vector<std::string> options = {}) : served_(BATON_PROGRAM, std::move(options)) {}

  // baton ARGUMENTS
  Said baton(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command = {"/usr/bin/env", "BATON_CONNECT=" + served_.address(), BATON_PROGRAM};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_program(std::move(command));
  }
  // A line of shell, in which `baton` is the program.
  Said shell(const std::string& line) const {
    return run_program({"/bin/bash", "-o", "pipefail", "-c",
                        "baton() { " BATON_PROGRAM " \"$@\"; }; export BATON_CONNECT=$0; " + line,
                        served_.address()});
  }
  Served& server() { return served_; }

 private:
  Served served_;
};

}  // namespace baton::cli
