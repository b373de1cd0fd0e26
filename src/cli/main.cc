// The `baton` command: reads its arguments and calls the part that does the work.
#include <CLI/CLI.hpp>

#include "cli/demo.h"
#include "cli/log_commands.h"
#include "cli/serve.h"

namespace {

constexpr int kExitUsage = 64;  // EX_USAGE; the parser's own numbers change with its version

}  // namespace

int main(int argc, char** argv) {
  using namespace baton::cli;
  CLI::App app("baton coordinates work on machines that may die at any moment.");
  app.name("baton");
  app.set_version_flag("--version", BATON_VERSION);
  app.require_subcommand(1);
  app.footer("Try: baton demo --data data");
  int exit_code = 0;

  DemoOptions demo;
  CLI::App* demo_command =
      app.add_subcommand("demo", "Runs tasks through workers that crash, and shows every log entry");
  demo_command->add_option("--data", demo.directory, "Data directory, made if need be")
      ->capture_default_str();
  demo_command->add_option("--tasks", demo.tasks, "Tasks to submit")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  demo_command->add_option("--workers", demo.workers, "Workers at a time")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  demo_command->callback([&] { exit_code = run_demo(demo); });

  ServeOptions serve;
  CLI::App* serve_command = app.add_subcommand("serve", "Serves clients and workers");
  serve_command->add_option("--data", serve.directory, "Data directory, made if need be")
      ->capture_default_str();
  serve_command->add_option("--listen", serve.listen, "Where to listen for RESP, HOST:PORT")
      ->capture_default_str();
  serve_command->add_option("--http", serve.http, "Where to listen for HTTP, HOST:PORT")
      ->capture_default_str();
  serve_command->callback([&] { exit_code = run_serve(serve); });

  CLI::App* log_command = app.add_subcommand("log", "Looks at, checks, and copies a data directory");
  log_command->require_subcommand(1);
  LogOptions log;
  const auto add = [&](const char* name, const char* description, int (*run)(const LogOptions&)) {
    CLI::App* command = log_command->add_subcommand(name, description);
    command->add_option("directory", log.directory, "Data directory")->required();
    command->add_flag("--json", log.json, "Output for programs");
    command->callback([&log, &exit_code, run] { exit_code = run(log); });
    return command;
  };
  CLI::App* verify = add("verify", "Checks every byte and replays every entry", log_verify);
  verify->add_flag("--full", log.full, "Replay from the very first entry, not from the oldest snapshot");
  verify->footer(
      "Exit codes: 0 intact, 1 a torn tail that a start would drop, 2 damaged, 3 entries contradict each "
      "other,\n"
      "4 a segment is missing, 5 written by a newer version, 74 the directory cannot be read.");
  CLI::App* dump = add("dump", "Prints the entries", log_dump);
  dump->add_option("--from", log.from, "First entry to print")->capture_default_str();
  dump->add_option("--to", log.to, "Last entry to print, 0 for all")->capture_default_str();
  add("stat", "Sizes and counts", log_stat);
  CLI::App* backup = add("backup", "Copies a directory, which may be in use, to a new one", log_backup);
  backup->add_option("target", log.target, "Where to; holds no log yet")->required();
  CLI::App* restore = add("restore", "Makes a data directory from a backup, after checking it", log_restore);
  restore->add_option("target", log.target, "Where to; must not exist")->required();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;  // help is an error to the parser
  }
  return exit_code;
}
