#include "cli/submit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/last_words.h"
#include "cli/line_reader.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/sender.h"
#include "cli/submission_json.h"
#include "cli/submission_tally.h"
#include "cli/task_ends.h"
#include "cli/task_text.h"
#include "client/call.h"
#include "core/names.h"

namespace baton::cli {
namespace {

constexpr const char* kAbout =
    R"(Times are written 250ms, 30s, 5m, 1h30m or 2d.

Exit codes: 0 all are submitted (and with --wait, completed), 1 some were refused, 2 with --wait: some
failed or died, 3 with --wait: some have not ended, 64 a wrong command line, 66 the input cannot be
read, 69 no coordinator there, 75 no answer: it may have happened or not, 77 not allowed.

Tasks of --lines and --ndjson have keys. What is under way when the connection breaks is sent again for
as long as --timeout says; so is what the coordinator has no room for, until it has taken nothing for that
long. After that, --run hands in the rest and nothing twice.

)";

constexpr std::size_t kRunBytesMax = 100;  // leaves room for the number of a line in a key

// Names what one call hands in, so that its keys are nobody else's.
std::string fresh_run() {
  std::random_device dice;
  return fmt::format("{:08x}{:08x}", dice(), dice());
}

std::string how_to_go_on(const std::string& run) {
  return fmt::format("baton: the same lines again with --run {} hand in what is missing, and nothing twice\n",
                     run);
}

int submit_one(client::Client& client, const SubmitOptions& options) {
  client::Submit task = options.task;
  if (!options.file.empty()) {
    auto content = read_whole(options.file);
    if (!content) {
      const int refused = complain(content.error(), format_of(options.json));
      return content.error().code == Errc::too_large ? refused : kExitNoInput;
    }
    task.payload = std::move(*content);
  }
  const auto submitted = client.submit(task);
  if (!submitted) return complain(submitted.error(), format_of(options.json));
  if (options.wait) return print_ends(client, {submitted->task}, options.within, format_of(options.json));
  fmt::print("{}\n", options.json ? json_of(*submitted).whole() : submitted->task);
  return 0;
}

// The task that a line stands for.
Result<client::Submit> task_of(std::string line, const SubmitOptions& options) {
  if (options.ndjson) return parse_submission(line, options.task);
  client::Submit task = options.task;
  if (options.keyed) {
    const std::size_t tab = line.find('\t');
    if (tab == 0 || tab == std::string::npos)
      return failure(Errc::invalid_request, "with --keyed a line begins with its key and a tab");
    task.key = line.substr(0, tab);
    line.erase(0, tab + 1);
  }
  task.payload = std::move(line);
  return task;
}

// Lines that come slowly go out at once, those that are there already together.
Status send_lines(LineReader& reader, Sender& sender, SubmissionTally& tally, const SubmitOptions& options,
                  const std::string& run) {
  Progress progress("tasks");
  for (std::size_t number = 0; !tally.is_hopeless(); ++number) {
    if (reader.would_wait()) sender.flush();
    auto line = reader.next();
    if (!line) break;
    if (!*line) return std::unexpected(line->error());
    auto task = task_of(std::move(**line), options);
    if (task) {
      // With a key it may be said again, by the client when a connection breaks and by whoever runs us.
      if (task->key.empty()) task->key = fmt::format("{}:{}", run, number + 1);
      sender.add(number, std::move(*task));
    } else {
      tally.settle(number, std::unexpected(task.error()));
    }
    progress.show(tally.accepted(), reader.bytes_read(), reader.bytes_total());
  }
  sender.finish();
  return {};
}

int submit_lines(client::Client& client, const SubmitOptions& options) {
  const auto descriptor = LineReader::open(options.file.empty() ? "-" : options.file);
  if (!descriptor) {
    complain(descriptor.error(), format_of(options.json));
    return kExitNoInput;
  }
  LineReader reader(*descriptor);
  const std::int64_t began_at = client::now_ms();
  const std::string run = options.run.empty() ? fresh_run() : options.run;
  SubmissionTally tally(options);
  Sender sender(client, options.connection.timeout,
                {.outcome = [&](std::size_t number, const auto& outcome) { tally.settle(number, outcome); },
                 .told = [] { (void)std::fflush(stdout); },
                 .held_back = [&](const Error& why) { tally.held_back(why); }});
  const LastWords if_ended(" not sent\n" + how_to_go_on(run),
                           {{"of the lines read: ", &sender.standing().taken},
                            {" taken, ", &sender.standing().unknown},
                            {" of unknown outcome, ", &sender.standing().unsent}});
  const Status read = send_lines(reader, sender, tally, options, run);
  sender.finish();
  to_errors("{}\n", tally.summary(client::now_ms() - began_at));
  if (tally.is_unfinished()) to_errors("{}", how_to_go_on(run));
  if (!read) complain(read.error(), format_of(options.json));
  int exit_code = read ? tally.exit_code() : kExitNoInput;
  if (options.wait)
    exit_code =
        std::max(exit_code, print_ends(client, tally.tasks(), options.within, format_of(options.json)));
  return exit_code;
}

// What makes no sense together.
std::optional<std::string> contradiction(const SubmitOptions& options) {
  const bool many = options.lines || options.ndjson;
  if (options.lines && options.ndjson) return "--lines and --ndjson exclude each other";
  if (options.payload && (many || !options.file.empty()))
    return "the payload comes from the command line or from a file, not from both";
  if (!options.payload && !many && options.file.empty())
    return "there is no payload; give it, or --file, --lines or --ndjson";
  if (!options.queue && !options.ndjson) return "queue is required";
  if (options.queue && !core::is_name(*options.queue)) return no_queue(*options.queue);
  if (options.within && !options.wait) return "--within is for --wait";
  if (many && !options.task.key.empty()) return "a key names one task, and there may be several";
  if (options.keyed && !options.lines) return "--keyed says what the lines of --lines are like";
  if (!many && (options.ids || !options.run.empty())) return "--ids and --run are for --lines and --ndjson";
  if (options.ids && (options.wait || options.json))
    return "--ids excludes --wait and --json, which prints ids too";
  if (!options.run.empty() && (!core::is_name(options.run) || options.run.size() > kRunBytesMax))
    return "--run is 1 to 100 graphic ASCII characters";
  return {};
}

}  // namespace

int run_submit(const SubmitOptions& options) {
  if (const auto complaint = contradiction(options)) {
    to_errors("baton: {}\n", *complaint);
    return kExitUsage;
  }
  const bool many = options.lines || options.ndjson;
  const auto submit = [&](client::Client& client) {
    return many ? submit_lines(client, options) : submit_one(client, options);
  };
  return with_client(options.connection, format_of(options.json), submit,
                     many ? Breaks::told : Breaks::untold);
}

void add_submit_command(CommandLine& line) {
  // The closure that runs the command shares the options with the parser that fills them.
  auto options = std::make_shared<SubmitOptions>();
  client::TaskOptions& task = options->task.options;
  Command submit = line.command("submit", "Hands in tasks");
  submit.optional_argument("queue", options->queue, "Queue; with --ndjson, of the tasks that name none")
      .optional_argument("payload", options->payload, "What the worker gets")
      .option("--file FILE", options->file,
              "The payload, or with --lines and --ndjson the input; - is standard input")
      .flag("--lines", options->lines, "A task for each line of the input, which is its payload")
      .flag("--ndjson", options->ndjson,
            "A task for each line of the input, as JSON: {\"queue\": \"mail\", \"payload\": \"hello\", "
            "\"key\": \"k1\"}")
      .flag("--keyed", options->keyed, "With --lines: a line is a key, a tab and the payload")
      .option("--run NAME", options->run,
              "Lines without a key get NAME:LINE, so the same lines again are the same tasks [random]")
      .flag("--ids", options->ids, "Print the id of each line's task, - for one that was not taken")
      .flag("--wait", options->wait, "Wait for the tasks to end, and print their results")
      .duration("--within TIME", options->within, "How long to wait")
      .flag("--json", options->json, "Output for programs: a line for each task");
  submit.heading("The task")
      .option("--key KEY", options->task.key, "The same key and content again is the same task")
      .number("--priority N", task.priority, "0 to 9, larger first", 9)
      .duration("--delay TIME", task.delay, "Not before this long from now")
      .options("--capability NAME", task.capabilities, "Only for workers that have it; may be repeated")
      .number("--max-failures N", task.max_failures, "The failure with this number is final [5]")
      .number("--max-attempts N", task.max_attempts, "It is dead after so many leases [20]")
      .duration("--max-hold TIME", task.max_hold, "A lease cannot be extended beyond this")
      .duration("--backoff TIME", task.backoff, "Wait after the first failure [1s]")
      .number("--backoff-factor PERCENT", task.backoff_factor_percent,
              "Each wait is this much of the one before [200]")
      .duration("--backoff-max TIME", task.backoff_max, "No wait is longer [5m]")
      .number("--jitter PERCENT", task.jitter_percent, "Give or take this much [10]", 100);
  add_connection_options(submit, options->connection);
  const std::string program = line.program();
  submit
      .footer(kAbout + ("Examples:\n  " + program) + " submit mail hello --priority 3\n  " + program +
              " submit thumbnails --lines --file pictures.txt\n  " + program +
              " submit add '2 3' --wait --within 1m")
      .run([options] {
        options->task.queue = options->queue.value_or("");
        options->task.payload = options->payload.value_or("");
        return run_submit(*options);
      });
}

}  // namespace baton::cli
