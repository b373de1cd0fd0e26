// The `baton` command: one line for each family of commands.
#include "cli/command_line.h"
#include "cli/demo.h"
#include "cli/log_commands.h"
#include "cli/serve.h"

int main(int argc, char** argv) {
  using namespace baton::cli;
  CommandLine line(argc, argv);
  add_demo_command(line);
  add_serve_command(line);
  add_log_commands(line);
  return line.run();
}
