#include "cli/queue_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/quantities.h"
#include "cli/table.h"

namespace baton::cli {
namespace {

constexpr std::uint32_t kPurgedAtOnce = 1024;

void say_paused(const QueueCommandOptions& options, const std::string& queue, bool paused) {
  if (options.json)
    fmt::print("{}\n", JsonObject().text("queue", queue).boolean("paused", paused).whole());
  else
    fmt::print("{} is {}\n", queue, paused ? "paused: its tasks wait" : "open again");
}

}  // namespace

JsonObject json_of(const client::QueueView& view) {
  return JsonObject()
      .text("queue", view.queue)
      .boolean("paused", view.paused)
      .number("waiting", view.waiting)
      .number("delayed", view.delayed)
      .number("leased", view.leased)
      .number("completed", view.completed)
      .number("failed", view.failed)
      .number("dead", view.dead);
}

int queue_list(client::Client& client, const QueueCommandOptions& options) {
  Table table({{"QUEUE"},
               {"WAITING", Align::right},
               {"OF THEM DELAYED", Align::right},
               {"LEASED", Align::right},
               {"COMPLETED", Align::right},
               {"FAILED", Align::right},
               {"DEAD", Align::right},
               {""}});
  client::QueueQuery query;
  do {
    const auto page = client.queues(query);
    if (!page) return complain(page.error(), format_of(options.json));
    for (const client::QueueView& view : page->queues) {
      if (options.json) {
        fmt::print("{}\n", json_of(view).whole());
      } else {
        table.row({printable(view.queue), std::to_string(view.waiting), std::to_string(view.delayed),
                   std::to_string(view.leased), std::to_string(view.completed), std::to_string(view.failed),
                   std::to_string(view.dead), view.paused ? "paused" : ""});
      }
    }
    query.cursor = page->cursor;
  } while (!query.cursor.empty());
  if (!options.json) table.print();
  return 0;
}

int queue_pause(client::Client& client, const QueueCommandOptions& options) {
  return do_each(options.queues, format_of(options.json), [&](const std::string& queue) -> Status {
    const Status done = client.pause(queue);
    if (done) say_paused(options, queue, true);
    return done;
  });
}

int queue_resume(client::Client& client, const QueueCommandOptions& options) {
  return do_each(options.queues, format_of(options.json), [&](const std::string& queue) -> Status {
    const Status done = client.resume(queue);
    if (done) say_paused(options, queue, false);
    return done;
  });
}

int queue_purge(client::Client& client, const QueueCommandOptions& options) {
  return do_each(options.queues, format_of(options.json), [&](const std::string& queue) -> Status {
    std::uint64_t total = 0;
    for (std::uint64_t purged = kPurgedAtOnce; purged == kPurgedAtOnce; total += purged) {
      const auto done = client.purge(queue, kPurgedAtOnce);
      if (!done) return std::unexpected(done.error());
      purged = *done;
    }
    if (options.json)
      fmt::print("{}\n", JsonObject().text("queue", queue).number("purged", total).whole());
    else
      fmt::print("{}: forgot {}\n", queue, counted(total, "finished task"));
    return {};
  });
}

void add_queue_commands(CommandLine& line) {
  line.group("queue", "Looks at queues, stops and starts them, clears them");
  const std::string program = line.program();
  // The closure that runs the command shares the options with the parser that fills them.
  const auto add = [&](const std::string& name, const char* description, const std::string& example,
                       int (*run)(client::Client&, const QueueCommandOptions&)) {
    auto options = std::make_shared<QueueCommandOptions>();
    Command command = line.command("queue " + name, description);
    if (run != queue_list) command.arguments("queue", options->queues, "Queues");
    command.flag("--json", options->json, "Output for programs: a line for each queue");
    add_connection_options(command, options->connection);
    command.footer("Example: " + program + " queue " + name + example);
    command.run([options, run] {
      return with_client(options->connection, format_of(options->json),
                         [&](client::Client& client) { return run(client, *options); });
    });
  };
  add("list", "Lists queues with their tasks by state", "", queue_list);
  add("pause", "Stops handing out tasks; those that workers have go on", " mail", queue_pause);
  add("resume", "Hands out tasks again", " mail", queue_resume);
  add("purge", "Forgets finished tasks now, and their results", " mail", queue_purge);
}

}  // namespace baton::cli
