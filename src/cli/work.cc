#include "cli/work.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/json_object.h"
#include "cli/output.h"
#include "cli/quantities.h"
#include "client/worker.h"
#include "core/names.h"
#include "process/child_process.h"
#include "process/descendants.h"

namespace baton::cli {
namespace {

constexpr std::size_t kResultBytesMax = 1'000'000;  // of any coordinator
constexpr std::string_view kPlace = "{}";
constexpr int kWakeUp = SIGUSR1;  // from our own threads: there is nothing left to do

constexpr const char* kAbout =
    R"(The command's exit code decides: 0 completes the task with its output as the result; 65 fails it for
good; any other fails this attempt, and the task is tried again as it was submitted to be. The end of
what it wrote to standard error is the reason. It finds BATON_TASK, BATON_QUEUE, BATON_ATTEMPT and
BATON_FENCE in its environment. Keep {} out of the text of a script, where a payload would be run:
not sh -c 'echo {}', but sh -c 'echo "$1"' sh {}.

If the lease is lost or the task cancelled, the command is ended: SIGTERM, then SIGKILL. Ctrl-C takes no
further task and waits for the commands that run; once more ends them and gives their tasks back; a third
time ends everything at once, and others get the tasks when the leases end.

Exit codes: 0 stopped as asked, 1 it could not begin, 64 a wrong command line, 69 no coordinator there, 77 not
allowed, 128 and the number of the signal if it was ended at once.

)";

std::string default_name() {
  char host[HOST_NAME_MAX + 1] = "worker";
  (void)::gethostname(host, sizeof host - 1);
  return fmt::format("{}-{}", host, ::getpid());
}

// Whether the payload goes into an argument; it is on standard input otherwise.
bool is_place(std::string_view word) { return word.find(kPlace) != word.npos; }
bool has_place(const std::vector<std::string>& command) { return std::ranges::any_of(command, is_place); }

std::string filled_in(std::string word, const std::string& payload) {
  for (std::size_t at = 0; (at = word.find(kPlace, at)) != std::string::npos; at += payload.size())
    word.replace(at, kPlace.size(), payload);
  return word;
}

process::ChildCommand command_for(const WorkOptions& options, const client::Job& job) {
  process::ChildCommand command{
      .words = options.command, .output_bytes_max = kResultBytesMax, .grace = options.grace};
  if (has_place(command.words)) {
    for (std::string& word : command.words) word = filled_in(std::move(word), job.payload);
  } else {
    command.input = job.payload;
  }
  command.environment = {"BATON_TASK=" + job.task, "BATON_QUEUE=" + job.queue,
                         "BATON_ATTEMPT=" + std::to_string(job.attempt), "BATON_FENCE=" + job.fence};
  return command;
}

std::string how_it_ended(const process::ChildEnd& end) {
  std::string text = end.signal != 0
                         ? fmt::format("ended by signal {} ({})", end.signal, ::strsignal(end.signal))
                         : fmt::format("exit code {}", end.exit_code);
  const std::size_t last = end.errors.find_last_not_of(" \r\n");
  if (last != std::string::npos) text += ": " + end.errors.substr(0, last + 1);
  return text;
}

// The client tells of those itself, and the worker goes on.
bool is_of_connection(Errc code) {
  return code == Errc::unavailable || code == Errc::outcome_unknown || code == Errc::deadline_exceeded;
}

class Work {
 public:
  explicit Work(const WorkOptions& options) : options_(options) {}

  Result<std::string> handle(const client::Job& job, const std::stop_token& lost) {
    if (job.payload.find('\0') != std::string::npos && has_place(options_.command))
      return failure(Errc::invalid_request,
                     "an argument cannot hold a zero byte; leave out {} for standard input");
    const std::stop_token stops[] = {lost, gives_up_.get_token()};
    auto end = process::run_child(command_for(options_, job), stops);
    if (!end) return std::unexpected(end.error());
    if (end->was_stopped) return failure(Errc::closed, "ended, for nobody wants it or there is no time");
    if (end->said_too_much) return failure(Errc::too_large, "the output is over 1 000 000 bytes");
    if (end->exit_code == 0) return std::move(end->output);
    const std::string how = how_it_ended(*end);
    to_errors("baton: {}: attempt {}: {}\n", job.task, job.attempt, how);
    return failure(end->exit_code == kExitHopelessTask ? Errc::invalid_request : Errc::io_failed, how);
  }
  static void failed(const std::string& task, const client::Verdict& verdict) {
    to_errors("baton: {}: {}\n", task,
              verdict.outcome == "retried"
                  ? fmt::format("is tried again in {}", rough_text(verdict.retry_at - wall_clock()))
                  : "has failed for good");
  }
  void trouble(const Error& error) {
    if (is_of_connection(error.code)) return;
    const std::lock_guard lock(mutex_);
    if (error.message != std::exchange(last_trouble_, error.message)) complain(error);
    if (error.code != Errc::permission_denied && error.code != Errc::invalid_request &&
        error.code != Errc::unsupported_version)
      return;
    exit_code_ = error.code == Errc::invalid_request ? kExitUsage : exit_code_of(in_our_words(error).code);
    wake_up();
  }
  void give_up() { gives_up_.request_stop(); }
  int exit_code() const { return exit_code_; }
  static void wake_up() { ::kill(::getpid(), kWakeUp); }

 private:
  const WorkOptions& options_;
  std::stop_source gives_up_;
  std::mutex mutex_;
  std::string last_trouble_;  // is not said twice in a row
  std::atomic<int> exit_code_ = 0;
};

bool is_program(const std::string& path) {
  struct stat status{};
  const bool is_file = ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  return is_file && ::access(path.c_str(), X_OK) == 0;
}

// Nothing may be tried with a command that is not there: every task would fail for it.
bool is_runnable(const std::string& word) {
  if (is_place(word)) return true;
  if (word.empty() || word.find('/') != std::string::npos) return is_program(word);
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    if (is_program(folder.empty() ? word : fmt::format("{}/{}", folder, word))) return true;
  }
  return false;
}

// Signals that wait to be asked for, in every thread that is started from now on.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&set_);
    for (const int number : {SIGINT, SIGTERM, kWakeUp}) ::sigaddset(&set_, number);
    struct sigaction hangup{};
    ::sigaction(SIGHUP, nullptr, &hangup);
    if (hangup.sa_handler != SIG_IGN) ::sigaddset(&set_, SIGHUP);  // as nohup has it
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    ::signal(SIGPIPE, SIG_IGN);  // a command need not read its input
  }
  // By which whoever started us wants us to end; 0: it was a wake-up.
  int next() const {
    int number = 0;
    ::sigwait(&set_, &number);
    return number == kWakeUp ? 0 : number;
  }

 private:
  sigset_t set_{};
};

client::WorkerOptions worker_options(const WorkOptions& options, Work& work) {
  client::WorkerOptions made{.name = options.name.empty() ? default_name() : options.name,
                             .slots = options.jobs,
                             .capabilities = options.capabilities,
                             .ttl = options.ttl,
                             .wait = options.drain ? milliseconds(100) : seconds(1),
                             .tasks_max = options.once ? 1u : 0u,
                             .failed = Work::failed,
                             .trouble = [&work](const Error& error) { work.trouble(error); }};
  for (const std::string& queue : options.queues) {
    made.handlers[queue] = [&work](const client::Job& job, const std::stop_token& lost) {
      return work.handle(job, lost);
    };
  }
  if (options.drain || options.once) made.idle = Work::wake_up;
  return made;
}

// The commands that run come to their end, unless somebody is impatient. Where there is no coordinator, to
// give tasks back may take as long as their leases; who is still impatient then does not want to wait for it.
void drain(client::Worker& worker, Work& work, const Signals& signals) {
  std::atomic<bool> is_drained = false;
  std::thread impatience([&] {
    for (bool has_given_up = false; !is_drained;) {
      const int number = signals.next();
      if (number == 0) continue;
      if (std::exchange(has_given_up, true)) {
        process::kill_descendants();
        ::_exit(128 + number);
      }
      to_errors("baton: ends the commands and gives their tasks back; once more ends everything at once\n");
      work.give_up();
    }
  });
  worker.drain();
  is_drained = true;
  Work::wake_up();
  impatience.join();
}

void print(const client::WorkerCounts& counts, Format format) {
  if (format == Format::text) {
    to_errors("{} completed, {} failed, {} lost, {} given back\n", counts.completed, counts.failed,
              counts.lost, counts.released);
  } else {
    fmt::print("{}\n", JsonObject()
                           .number("completed", counts.completed)
                           .number("failed", counts.failed)
                           .number("lost", counts.lost)
                           .number("released", counts.released)
                           .whole());
  }
}

}  // namespace

int run_work(const WorkOptions& options) {
  if (!is_runnable(options.command.front())) {
    to_errors("baton: there is no program '{}' to run\n", options.command.front());
    return kExitUsage;
  }
  for (const std::string& queue : options.queues) {
    if (core::is_name(queue)) continue;
    to_errors("baton: {}\n", no_queue(queue));
    return kExitUsage;
  }
  const auto reached =
      client_options(options.connection, Breaks::told);  // it may take a while, and Ctrl-C ends it
  if (!reached) return complain_of_connection(reached.error(), format_of(options.json));
  const Signals signals;
  client::Client client(*reached);
  Work work(options);
  auto worker = client::Worker::start(client, worker_options(options, work));
  if (!worker) return complain_of_connection(worker.error(), format_of(options.json));
  if (signals.next() != 0)
    to_errors("baton: takes no further task and waits for those under way; once more gives them back\n");
  drain(**worker, work, signals);
  if (work.exit_code() != kExitUsage) print((*worker)->counts(), format_of(options.json));
  return work.exit_code();
}

void add_work_command(CommandLine& line) {
  // The closure that runs the command shares the options with the parser that fills them.
  auto options = std::make_shared<WorkOptions>();
  Command work = line.command("work", "Runs a command for each task");
  work.arguments("queue", options->queues, "Where tasks are taken from; 16 queues at most")
      .rest("command", options->command,
            "What to run; {} stands for the payload, which is on standard input otherwise")
      .number("-j,--jobs N", options->jobs, "Commands at a time", 1, client::kSlotsMax)
      .flag("--drain", options->drain, "Stop when there is no task to take")
      .flag("--once", options->once, "Stop after one task")
      .option("--name NAME", options->name, "What the worker is called [HOST-PID]")
      .options("--capability NAME", options->capabilities, "What it can do; may be repeated")
      .duration("--ttl TIME", options->ttl,
                "How long a lease holds if this worker dies; it is extended meanwhile")
      .flag("--json", options->json, "What became of the tasks, at the end, for programs")
      .duration("--grace TIME", options->grace, "What a command is given to end before it is killed");
  add_connection_options(work, options->connection);
  const std::string program = line.program();
  work.footer(kAbout + ("Examples:\n  " + program) + " work upper --drain -- tr a-z A-Z\n  " + program +
              " work thumbnails -j 4 -- convert {} -resize 200x200 {}.small.png")
      .run([options] { return run_work(*options); });
}

}  // namespace baton::cli
