#include "cli/task_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/output.h"
#include "cli/quantities.h"
#include "cli/table.h"
#include "cli/task_actions.h"
#include "cli/task_ends.h"
#include "cli/task_text.h"

namespace baton::cli {
namespace {

constexpr std::uint64_t kPageMax = 1000;
constexpr std::uint64_t kChosenMax = 1000;  // unless more are asked for
constexpr std::size_t kShownMax = 2000;     // characters of a payload, for people

constexpr const char* kDelayed = "delayed";  // waiting, and not before its time

Duration since(Instant at) { return wall_clock() - at; }

// Until then, if it waits for its time to come.
std::optional<Duration> delay_of(const client::TaskView& view) {
  const Duration waited = since(view.since);
  if (view.state != "waiting" || waited >= Duration{}) return {};
  return Duration{} - waited;
}

std::string due_text(Duration delay) { return "due in " + rough_text(delay); }

std::string state_text(const client::TaskView& view) {
  if (const auto delay = delay_of(view)) return "delayed, " + due_text(*delay);
  std::string text = view.state;
  if (!view.worker.empty()) text += fmt::format(" by {}", view.worker);
  if (!view.dead_reason.empty()) text += fmt::format(" ({})", view.dead_reason);
  return fmt::format("{}, for {}", text, rough_text(since(view.since)));
}

void print_task(const client::Task& task) {
  const client::TaskView& view = task.view;
  const auto line = [](const char* name, const std::string& value) {
    if (!value.empty()) fmt::print("{:<13} {}\n", name, value);
  };
  line("task", view.task);
  line("queue", view.queue);
  line("key", view.key);
  line("state", state_text(view));
  if (view.state == "leased")
    line("lease ends", fmt::format("in {}", rough_text(Duration{} - since(view.lease_expiry))));
  line("submitted", fmt::format("{} ago", rough_text(since(view.created_at))));
  line("attempts", fmt::format("{}, of which {} failed", view.attempt, view.failures));
  if (view.priority > 0) line("priority", std::to_string(view.priority));
  line("capabilities", view.capabilities);
  line("retry of", view.retry_of);
  line("payload", printable(task.payload, kShownMax));
  line("result", printable(task.result, kShownMax));
  line(view.dead_reason == "cancelled" ? "note" : "last failure", printable(task.reason, kShownMax));
}

void print_bytes(const std::string& bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }

}  // namespace

int task_get(client::Client& client, const TaskCommandOptions& options) {
  bool is_first = true;
  return do_each(options.tasks, format_of(options.json), [&](const std::string& name) -> Status {
    auto task = client.get(name);
    if (!task) return std::unexpected(task.error());
    if (options.only == "payload") print_bytes(task->payload);
    if (options.only == "result") print_bytes(task->result);
    if (options.only == "reason") print_bytes(task->reason);
    if (!options.only.empty()) return {};
    if (options.json) {
      fmt::print("{}\n", json_of(*task).whole());
    } else {
      if (!std::exchange(is_first, false)) fmt::print("\n");
      print_task(*task);
    }
    return {};
  });
}

int task_wait(client::Client& client, const TaskCommandOptions& options) {
  return print_ends(client, options.tasks, options.within, format_of(options.json));
}

int task_list(client::Client& client, const TaskCommandOptions& options) {
  Table table({{"TASK"},
               {"QUEUE"},
               {"STATE"},
               {"FOR", Align::right},
               {"TRIES", Align::right},
               {"PRIORITY", Align::right},
               {"WORKER"},
               {"KEY"}});
  client::TaskQuery query = options.query;
  const bool only_delayed = query.state == kDelayed;
  if (only_delayed) query.state = "waiting";
  std::uint64_t left = options.limit == 0 ? UINT64_MAX : options.limit;
  do {
    query.count = static_cast<std::uint32_t>(std::min(left, kPageMax));
    const auto page = client.tasks(query);
    if (!page) return complain(page.error(), format_of(options.json));
    for (const client::TaskView& view : page->tasks) {
      const auto delay = delay_of(view);
      if (only_delayed && !delay) continue;
      --left;
      if (options.json) {
        fmt::print("{}\n", json_of(view).whole());
      } else {
        table.row({view.task, printable(view.queue), delay ? kDelayed : view.state,
                   delay ? due_text(*delay) : rough_text(since(view.since)), std::to_string(view.attempt),
                   std::to_string(view.priority), printable(view.worker), printable(view.key)});
      }
    }
    query.cursor = page->cursor;
  } while (query.cursor != 0 && left > 0);
  if (options.json) return 0;
  table.print();
  if (query.cursor != 0) to_errors("baton: there may be more; --limit 0 shows all\n");
  return 0;
}

void add_task_commands(CommandLine& line) {
  line.group("task", "Looks at tasks, waits for them, cancels them, hands them in again");
  const std::string program = line.program();
  // The closure that runs the command shares the options with the parser that fills them.
  const auto add = [&](const std::string& name, const char* description, const std::string& example,
                       int (*run)(client::Client&, const TaskCommandOptions&),
                       std::optional<std::string> (*check)(const TaskCommandOptions&) = nullptr) {
    auto options = std::make_shared<TaskCommandOptions>();
    Command command = line.command("task " + name, description);
    command.footer("Example: " + program + " task " + name + " " + example);
    command.run([options, run, check] {
      if (const auto complaint = check != nullptr ? check(*options) : std::nullopt) {
        to_errors("baton: {}\n", *complaint);
        return kExitUsage;
      }
      return with_client(options->connection, format_of(options->json),
                         [&](client::Client& client) { return run(client, *options); });
    });
    return std::pair(command, options);
  };
  constexpr const char* kTask = "Task ids, or key: and the key of one";

  auto [get, got] = add("get", "Shows tasks with payload, and result or reason", "key:greet-alice", task_get);
  get.arguments("task", got->tasks, kTask)
      .choice("--only PART", got->only, {"payload", "result", "reason"},
              "payload, result or reason: these bytes and nothing else");

  auto [wait, waited] = add("wait", "Waits for tasks to end, and prints their results",
                            "key:greet-alice --within 5m", task_wait);
  wait.arguments("task", waited->tasks, kTask)
      .duration("--within TIME", waited->within, "How long to wait; as long as it takes if not given");

  auto [list, listed] = add("list", "Lists tasks, in the order in which they were submitted",
                            "--queue mail --state leased --older-than 1h", task_list);
  list.option("--queue QUEUE", listed->query.queue, "Of this queue only")
      .choice("--state STATE", listed->query.state,
              {"waiting", kDelayed, "leased", "completed", "failed", "dead"},
              "waiting (delayed or not), delayed, leased, completed, failed or dead only")
      .option("--worker NAME", listed->query.worker, "Held by this worker only")
      .duration("--older-than TIME", listed->query.older_than, "In their state for longer than this only")
      .number("--limit N", listed->limit, "So many at most, 0 for all");

  auto [cancel, cancelled] = add("cancel", "Ends tasks that are no longer wanted",
                                 "key:greet-alice --note 'wrong address'", task_cancel, contradiction);
  cancel.some_arguments("task", cancelled->tasks, kTask)
      .option("--actor NAME", cancelled->actor, "Who wants it")
      .environment("USER")
      .option("--note TEXT", cancelled->note, "Why");

  auto [requeue, requeued] = add("requeue", "Hands failed or dead tasks in once more, as new tasks",
                                 "--queue mail --state dead", task_requeue, contradiction);
  requeue.some_arguments("task", requeued->tasks, kTask)
      .option("--key KEY", requeued->key, "Of the new task, if it is one");
  for (auto& [command, options, states] :
       {std::tuple(cancel, cancelled, std::vector<std::string>{"waiting", "leased"}),
        std::tuple(requeue, requeued, std::vector<std::string>{"failed", "dead"})}) {
    Command each = command;
    options->limit = kChosenMax;
    each.option("--queue QUEUE", options->query.queue, "In place of tasks: all of this queue")
        .flag("--all-queues", options->all_queues, "In place of tasks: all of every queue")
        .choice("--state STATE", options->query.state, states, "In place of tasks: all in this state")
        .number("--limit N", options->limit, "So many of them at most", 1)
        .flag("--dry-run", options->dry_run, "Print which ones, and do nothing");
  }

  for (auto& [command, options] : {std::pair(get, got), std::pair(wait, waited), std::pair(list, listed),
                                   std::pair(cancel, cancelled), std::pair(requeue, requeued)}) {
    Command each = command;
    each.flag("--json", options->json, "Output for programs: a line for each task");
    add_connection_options(each, options->connection);
  }
}

}  // namespace baton::cli
