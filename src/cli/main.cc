// The `baton` command: reads its arguments and calls the part that does the work.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "cli/demo.h"
#include "cli/log_commands.h"

namespace {

constexpr int kExitOutput = 74;  // EX_IOERR

// A look at a directory that is in use holds every segment open.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE,
                    &limit);  // if it is refused, a large directory says that files are too many
}

int complain_of_output(const char* why) {
  fmt::print(stderr, "baton: the output cannot be written: {}\n", why);
  return kExitOutput;
}

int run(int argc, char** argv) {
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
  verify->add_flag("--full", log.full,
                   "Replay from the very first entry, if it is still there, not from the oldest snapshot");
  verify->footer(
      "Exit codes: 0 intact, 1 a torn tail that a start sets aside, 2 damaged, 3 entries contradict each "
      "other,\n"
      "4 a segment is missing, 5 written by a newer version, 74 the directory cannot be read.");
  CLI::App* dump = add("dump", "Prints the entries that are there", log_dump);
  dump->add_option("--from", log.from, "First entry to print")->capture_default_str();
  dump->add_option("--to", log.to, "Last entry to print, 0 for all")->capture_default_str();
  add("stat", "Sizes and counts", log_stat);
  CLI::App* backup = add("backup", "Copies a directory, which may be in use, to a new one", log_backup);
  backup->add_option("target", log.target, "Where to; made if need be, holds no log yet")->required();
  CLI::App* restore = add("restore", "Makes a data directory from a backup, after checking it", log_restore);
  restore->add_option("target", log.target, "Where to; made if need be, holds no log yet")->required();

  CLI11_PARSE(app, argc, argv);
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  allow_many_files();
  int exit_code = 0;
  try {
    exit_code = run(argc, argv);
  } catch (const std::system_error& error) {
    return complain_of_output(std::strerror(error.code().value()));
  }
  // Output that did not get there was not given, whatever there was to say.
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return complain_of_output(errno != 0 ? std::strerror(errno) : "a write failed");
  return exit_code;
}
