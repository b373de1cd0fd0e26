// The `baton` command: one line for each family of commands.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "cli/audit.h"
#include "cli/bench.h"
#include "cli/checkpoint_commands.h"
#include "cli/command_line.h"
#include "cli/demo.h"
#include "cli/log_commands.h"
#include "cli/man_page.h"
#include "cli/output.h"
#include "cli/pipeline_commands.h"
#include "cli/pipeline_worker.h"
#include "cli/queue_commands.h"
#include "cli/run_command.h"
#include "cli/serve.h"
#include "cli/stats.h"
#include "cli/stream_commands.h"
#include "cli/submit.h"
#include "cli/task_commands.h"
#include "cli/token.h"
#include "cli/top.h"
#include "cli/work.h"

namespace {

constexpr int kExitOutput = 74;    // EX_IOERR
constexpr int kExitInternal = 70;  // EX_SOFTWARE
constexpr int kExitInternalOfRun = 5;

// A file that is opened later would get the number of a closed output, and what is said would be written into
// it. Reading from there, or writing, fails as it does with one that is closed.
void occupy_what_is_closed() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) < 0) (void)::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// A look at a directory that is in use holds every segment open.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE,
                    &limit);  // if it is refused, a large directory says that files are too many
}

int complain_of_output(const char* why) {
  baton::cli::to_errors("baton: the output cannot be written: {}\n", why);
  return kExitOutput;
}

// Something that nobody was prepared for.
int complain_of(const char* why, int argc, char** argv) {
  baton::cli::to_errors("baton: {}\n", why);
  return argc > 1 && std::string_view(argv[1]) == "run" ? kExitInternalOfRun : kExitInternal;
}

int run(int argc, char** argv) {
  using namespace baton::cli;
  CommandLine line(argc, argv);
  add_serve_command(line);
  add_token_command(line);
  add_audit_command(line);
  add_submit_command(line);
  add_work_command(line);
  add_task_commands(line);
  add_queue_commands(line);
  add_stats_commands(line);
  add_top_command(line);
  add_bench_command(line);
  add_log_commands(line);
  add_stream_commands(line);
  add_checkpoint_commands(line);
  add_run_command(line);
  add_pipeline_commands(line);
  add_worker_command(line);
  add_demo_command(line);
  add_document_commands(line);
  return line.run();
}

}  // namespace

int main(int argc, char** argv) {
  occupy_what_is_closed();
  allow_many_files();
  int exit_code = 0;
  try {
    exit_code = run(argc, argv);
  } catch (const std::system_error& error) {
    // What prints throws the same as what asks for files.
    if (std::ferror(stdout) != 0) return complain_of_output(std::strerror(error.code().value()));
    return complain_of(error.what(), argc, argv);
  } catch (const std::bad_alloc&) {
    return complain_of("out of memory", argc, argv);
  } catch (const std::exception& error) {
    return complain_of(error.what(), argc, argv);
  }
  // Output that did not get there was not given, whatever there was to say.
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return complain_of_output(errno != 0 ? std::strerror(errno) : "a write failed");
  return exit_code;
}
