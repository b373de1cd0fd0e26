// A few tasks, workers that crash, fail and come back too late, and every entry that makes it into the log.
#pragma once

#include <cstdint>
#include <string>

namespace baton::cli {

struct DemoOptions {
  std::string directory = "demo-data";  // and not where a server keeps its own
  std::string program = "baton";        // as it was called
  std::uint64_t tasks = 12;
  std::uint64_t workers = 3;
};

int run_demo(const DemoOptions& options);

class CommandLine;
void add_demo_command(CommandLine& line);

}  // namespace baton::cli
