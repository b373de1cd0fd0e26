#include "cli/task_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/quantities.h"
#include "cli/table.h"
#include "cli/task_ends.h"
#include "cli/task_text.h"

namespace baton::cli {
namespace {

constexpr std::uint64_t kPageMax = 1000;
constexpr std::size_t kShownMax = 2000;  // characters of a payload, for people

// The coordinator's clock is not ours, but its instants are times of day.
Duration since(Instant at) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return Instant{std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000} - at;
}

std::string state_text(const client::TaskView& view) {
  std::string text = view.state;
  if (!view.worker.empty()) text += fmt::format(" by {}", view.worker);
  if (!view.dead_reason.empty()) text += fmt::format(" ({})", view.dead_reason);
  const Duration held = since(view.since);
  if (view.state == "waiting" && held < Duration{})
    return fmt::format("{}, due in {}", text, rough_text(Duration{} - held));
  return fmt::format("{}, for {}", text, rough_text(held));
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
  line("last failure", printable(task.reason, kShownMax));
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
  std::uint64_t left = options.limit == 0 ? UINT64_MAX : options.limit;
  do {
    query.count = static_cast<std::uint32_t>(std::min(left, kPageMax));
    const auto page = client.tasks(query);
    if (!page) return complain(page.error(), format_of(options.json));
    for (const client::TaskView& view : page->tasks) {
      if (options.json) {
        fmt::print("{}\n", json_of(view).whole());
      } else {
        table.row({view.task, printable(view.queue), view.state, rough_text(since(view.since)),
                   std::to_string(view.attempt), std::to_string(view.priority), printable(view.worker),
                   printable(view.key)});
      }
    }
    left -= page->tasks.size();
    query.cursor = page->cursor;
  } while (query.cursor != 0 && left > 0);
  if (options.json) return 0;
  table.print();
  if (query.cursor != 0) fmt::print(stderr, "baton: there may be more; --limit 0 shows all\n");
  return 0;
}

int task_cancel(client::Client& client, const TaskCommandOptions& options) {
  return do_each(options.tasks, format_of(options.json), [&](const std::string& task) -> Status {
    if (auto done = client.cancel(task, options.actor, options.note); !done) return done;
    if (options.json)
      fmt::print("{}\n", JsonObject().text("task", task).text("status", "COMMITTED").whole());
    else
      fmt::print("{} is cancelled\n", task);
    return {};
  });
}

int task_requeue(client::Client& client, const TaskCommandOptions& options) {
  if (!options.key.empty() && options.tasks.size() > 1)
    return complain({Errc::invalid_request, "a key names one task, and there are several"},
                    format_of(options.json));
  return do_each(options.tasks, format_of(options.json), [&](const std::string& task) -> Status {
    const auto made = client.requeue(task, options.key);
    if (!made) return std::unexpected(made.error());
    fmt::print("{}\n", options.json ? json_of(*made).whole() : made->task);
    return {};
  });
}

void add_task_commands(CommandLine& line) {
  line.group("task", "Looks at tasks, waits for them, cancels them, hands them in again");
  const std::string program = line.program();
  // The closure that runs the command shares the options with the parser that fills them.
  const auto add = [&](const std::string& name, const char* description, const std::string& example,
                       int (*run)(client::Client&, const TaskCommandOptions&)) {
    auto options = std::make_shared<TaskCommandOptions>();
    Command command = line.command("task " + name, description);
    command.footer("Example: " + program + " task " + name + " " + example);
    command.run([options, run] {
      return with_client(options->connection, format_of(options->json),
                         [&](client::Client& client) { return run(client, *options); });
    });
    return std::pair(command, options);
  };
  constexpr const char* kTask = "Task ids, or key: and the key of one";

  auto [get, got] = add("get", "Shows tasks with payload, and result or reason", "key:greet-alice", task_get);
  get.arguments("task", got->tasks, kTask)
      .choice("--only PART", got->only, {"payload", "result", "reason"}, "These bytes and nothing else");

  auto [wait, waited] = add("wait", "Waits for tasks to end, and prints their results",
                            "key:greet-alice --within 5m", task_wait);
  wait.arguments("task", waited->tasks, kTask)
      .duration("--within TIME", waited->within, "How long to wait; as long as it takes if not given");

  auto [list, listed] = add("list", "Lists tasks, in the order in which they were submitted",
                            "--queue mail --state leased --older-than 1h", task_list);
  list.option("--queue QUEUE", listed->query.queue, "Of this queue only")
      .choice("--state STATE", listed->query.state, {"waiting", "leased", "completed", "failed", "dead"},
              "waiting, leased, completed, failed or dead only")
      .option("--worker NAME", listed->query.worker, "Held by this worker only")
      .duration("--older-than TIME", listed->query.older_than, "In their state for longer than this only")
      .number("--limit N", listed->limit, "So many at most, 0 for all");

  auto [cancel, cancelled] = add("cancel", "Ends tasks that are no longer wanted",
                                 "key:greet-alice --note 'wrong address'", task_cancel);
  cancel.arguments("task", cancelled->tasks, kTask)
      .option("--actor NAME", cancelled->actor, "Who wants it")
      .environment("USER")
      .option("--note TEXT", cancelled->note, "Why");

  auto [requeue, requeued] =
      add("requeue", "Hands failed or dead tasks in once more, as new tasks", "6743b0aa-1f", task_requeue);
  requeue.arguments("task", requeued->tasks, kTask)
      .option("--key KEY", requeued->key, "Of the new task, if it is one");

  for (auto& [command, options] : {std::pair(get, got), std::pair(wait, waited), std::pair(list, listed),
                                   std::pair(cancel, cancelled), std::pair(requeue, requeued)}) {
    Command each = command;
    each.flag("--json", options->json, "Output for programs: a line for each task");
    add_connection_options(each, options->connection);
  }
}

}  // namespace baton::cli
