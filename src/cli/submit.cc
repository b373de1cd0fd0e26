#include "cli/submit.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/in_order.h"
#include "cli/line_reader.h"
#include "cli/progress.h"
#include "cli/quantities.h"
#include "cli/sender.h"
#include "cli/submission_json.h"
#include "cli/task_ends.h"
#include "cli/task_text.h"
#include "client/call.h"

namespace baton::cli {
namespace {

constexpr const char* kAbout =
    R"(Times are written 250ms, 30s, 5m, 1h30m or 2d.

Exit codes: 0 all are submitted (and with --wait, completed), 1 some were refused, 2 with --wait: some
failed or died, 3 with --wait: some have not ended, 64 a wrong command line, 66 the input cannot be
read, 69 no coordinator there, 75 no answer: it may have happened or not, 77 not allowed.

)";

constexpr std::uint64_t kComplaintsMax = 10;  // told one by one; further ones are only counted

// After such an answer the next task would get the same.
bool is_hopeless(Errc code) {
  return code == Errc::unavailable || code == Errc::permission_denied || code == Errc::deadline_exceeded;
}

// What became of the tasks, told in the order of the input.
class Tally {
 public:
  explicit Tally(const SubmitOptions& options) : options_(options) {}

  void settle(std::size_t number, Result<client::Submitted> outcome) {
    const std::lock_guard lock(mutex_);
    in_order_.put(number, std::move(outcome));
  }
  bool is_hopeless() const { return is_hopeless_; }
  std::uint64_t accepted() const { return accepted_; }
  std::uint64_t existed() const { return existed_; }
  std::uint64_t refused() const { return refused_; }
  int exit_code() const { return exit_code_; }
  const std::vector<std::string>& tasks() const { return tasks_; }

 private:
  void tell(std::size_t number, const Result<client::Submitted>& outcome) {
    if (!outcome) return tell_of(number, outcome.error());
    ++accepted_;
    if (outcome->existed) ++existed_;
    if (options_.wait) return tasks_.push_back(outcome->task);
    if (options_.json) fmt::print("{}\n", json_of(*outcome).whole());
  }
  void tell_of(std::size_t number, const Error& error) {
    exit_code_ = std::max(exit_code_, exit_code_of(error.code));
    is_hopeless_ = is_hopeless_ || cli::is_hopeless(error.code);
    if (options_.json) fmt::print("{}\n", json_of(error).number("line", number + 1).whole());
    if (++refused_ > kComplaintsMax) return;
    fmt::print(stderr, "baton: line {}: {}: {}{}\n", number + 1, word(error.code), error.message,
               refused_ == kComplaintsMax ? " (further ones are only counted)" : "");
  }

  const SubmitOptions& options_;
  InOrder<Result<client::Submitted>> in_order_{
      [this](std::size_t number, const Result<client::Submitted>& outcome) { tell(number, outcome); }};
  std::mutex mutex_;
  std::vector<std::string> tasks_;
  std::atomic<std::uint64_t> accepted_ = 0;
  std::atomic<std::uint64_t> existed_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<bool> is_hopeless_ = false;
  int exit_code_ = 0;
};

int submit_one(client::Client& client, const SubmitOptions& options) {
  client::Submit task = options.task;
  if (!options.file.empty()) {
    auto content = read_whole(options.file);
    if (!content) {
      complain(content.error(), format_of(options.json));
      return kExitNoInput;
    }
    task.payload = std::move(*content);
  }
  const auto submitted = client.submit(task);
  if (!submitted) return complain(submitted.error(), format_of(options.json));
  if (options.wait) return print_ends(client, {submitted->task}, options.within, format_of(options.json));
  fmt::print("{}\n", options.json ? json_of(*submitted).whole() : submitted->task);
  return 0;
}

void print_counts(const Tally& tally, std::int64_t took_ms) {
  std::string more;
  if (tally.existed() > 0) more += fmt::format(", {} of them known already", tally.existed());
  if (tally.refused() > 0) more += fmt::format(", {} refused", tally.refused());
  fmt::print(stderr, "{} submitted in {:.1f} s{}\n", counted(tally.accepted(), "task"),
             static_cast<double>(took_ms) / 1000, more);
}

// Lines that come slowly go out at once, those that are there already together.
Status send_lines(LineReader& reader, Sender& sender, Tally& tally, const SubmitOptions& options) {
  Progress progress("tasks");
  for (std::size_t number = 0; !tally.is_hopeless(); ++number) {
    if (reader.would_wait()) sender.flush();
    auto line = reader.next();
    if (!line) break;
    if (!*line) return std::unexpected(line->error());
    if (options.ndjson) {
      auto task = parse_submission(**line, options.task);
      if (task) {
        sender.add(number, std::move(*task));
      } else {
        tally.settle(number, std::unexpected(task.error()));
      }
    } else {
      client::Submit task = options.task;
      task.payload = std::move(**line);
      sender.add(number, std::move(task));
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
  Tally tally(options);
  Sender sender(client, [&](std::size_t number, const auto& outcome) { tally.settle(number, outcome); });
  const Status read = send_lines(reader, sender, tally, options);
  sender.finish();
  print_counts(tally, client::now_ms() - began_at);
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
  if (many && !options.task.key.empty()) return "a key names one task, and there may be several";
  return {};
}

}  // namespace

int run_submit(const SubmitOptions& options) {
  if (const auto complaint = contradiction(options)) {
    fmt::print(stderr, "baton: {}; baton submit --help tells how it is used\n", *complaint);
    return kExitUsage;
  }
  return with_client(options.connection, format_of(options.json), [&](client::Client& client) {
    return options.lines || options.ndjson ? submit_lines(client, options) : submit_one(client, options);
  });
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
