// Runs a command to its end: hands it its input, keeps what it says, and ends it if nobody wants it any more.
//
// It has a process group of its own, so that Ctrl-C on the terminal is ours to deal with, and so that
// whatever it started ends with it: SIGTERM first, SIGKILL to what is left after the grace. If we die, it is
// killed.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace baton::process {

enum class Output : bool { standard, errors };

struct ChildCommand {
  std::vector<std::string> words;        // the first one is looked for on its PATH, and then on ours
  std::vector<std::string> environment;  // NAME=value, besides our own
  std::vector<std::string> withheld;     // names of our own that it does not get
  std::string directory;                 // to run in; empty: ours
  std::string input;
  std::size_t output_bytes_max = 0;
  Duration grace;
  // Gets all that it says, as it says it, and nothing is kept or shown. Empty: what is said to ChildEnd.
  std::function<void(Output, std::string_view)> said;
};

struct ChildEnd {
  int exit_code = -1;
  int signal = 0;  // that ended it, or 0
  std::string output;
  std::string errors;          // the last of what it wrote to standard error
  bool was_stopped = false;    // by a stop token
  bool said_too_much = false;  // and was ended for it
};

// An error means that it could not be started.
Result<ChildEnd> run_child(const ChildCommand& command, std::span<const std::stop_token> stops);

// To be called between writing a program and running it. A command that another thread was just starting has
// for a moment all files that we had open, and what is open for writing cannot be run ("text file busy").
// Returns when there is no such command any more.
void let_starts_pass();

}  // namespace baton::process
