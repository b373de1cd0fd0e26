#include "cli/stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string_view>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/quantities.h"
#include "cli/table.h"
#include "pipeline/reservation.h"

namespace baton::cli {
namespace {

struct StatsOptions {
  Connection connection;
  bool json = false;
};

JsonObject& add(JsonObject& json, const client::TaskCounts& counts) {
  return json.number("queues", counts.queues)
      .number("waiting", counts.waiting)
      .number("leased", counts.leased)
      .number("completed", counts.completed)
      .number("failed", counts.failed)
      .number("dead", counts.dead);
}

}  // namespace

JsonObject json_of(const client::Stats& stats) {
  JsonObject server, all, here, streams;
  server.text("version", stats.version)
      .number("uptime_ms", static_cast<std::uint64_t>(stats.uptime.ms))
      .number("epoch", stats.epoch)
      .number("recovery_ms", static_cast<std::uint64_t>(stats.recovery.ms))
      .number("memory_bytes", stats.memory_bytes)
      .number("connections_resp", stats.connections_resp)
      .number("connections_http", stats.connections_http)
      .number("workers", stats.workers)
      .number("leases", stats.leases)
      .number("commands", stats.commands)
      .number("refusals", stats.refusals)
      .number("durable_lag", stats.durable_lag)
      .number("flushes", stats.flushes)
      .number("flush_p50_us", stats.flush_p50_us)
      .number("flush_p99_us", stats.flush_p99_us)
      .number("flushed_entries", stats.flushed_entries)
      .number("flushed_bytes", stats.flushed_bytes)
      .number("batch_entries", stats.batch_entries)
      .text("disk", stats.disk)
      .number("disk_free_bytes", stats.disk_free_bytes);
  here.text("name", stats.ns);
  streams.number("services", stats.streams.services)
      .number("instances", stats.streams.instances)
      .number("streams", stats.streams.streams)
      .number("waiting", stats.streams.waiting)
      .number("held", stats.streams.held)
      .number("dead", stats.streams.dead);
  return JsonObject()
      .number("lsn", stats.lsn)
      .object("server", server)
      .object("tasks", add(all, stats.tasks))
      .object("namespace", add(here, stats.in_namespace).number("payload_bytes", stats.payload_bytes))
      .object("streams", streams);
}

JsonObject json_of(const client::WorkerView& view) {
  JsonObject json;
  json.text("worker", view.worker)
      .number("leases", view.leases)
      .number("capacity", view.capacity)
      .text("capabilities", view.capabilities);
  if (view.silent_for) json.number("silent_ms", static_cast<std::uint64_t>(view.silent_for->ms));
  return json;
}

namespace {

std::string text_of(const client::TaskCounts& counts) {
  return fmt::format("{} waiting, {} leased, {} completed, {} failed, {} dead, in {}", counts.waiting,
                     counts.leased, counts.completed, counts.failed, counts.dead,
                     counted(counts.queues, "queue"));
}

std::string disk_text(const std::string& disk) {
  if (disk == "nearly_full") return "; nearly full: submissions are refused, free some space";
  if (disk == "full") return "; full: nothing can be recorded, free some space";
  return "";
}

void print(const client::Stats& stats) {
  const auto line = [](const std::string& name, const std::string& value) {
    fmt::print("{:<13} {}\n", name, value);
  };
  line("server", fmt::format("baton {}, up {}, recovered in {}", stats.version, rough_text(stats.uptime),
                             rough_text(stats.recovery)));
  line("memory", size_text(stats.memory_bytes));
  line("connections",
       fmt::format("{} Redis protocol, {} HTTP", stats.connections_resp, stats.connections_http));
  line("commands", fmt::format("{}, {} refused", stats.commands, stats.refusals));
  line("workers", fmt::format("{}, {}", stats.workers, counted(stats.leases, "lease")));
  line("tasks", text_of(stats.tasks));
  line("in " + printable(stats.ns, 20), text_of(stats.in_namespace));
  line("streams",
       fmt::format("{} waiting, {} held, {} dead, in {} of {}, {}", stats.streams.waiting, stats.streams.held,
                   stats.streams.dead, counted(stats.streams.streams, "stream"),
                   counted(stats.streams.services, "service"), counted(stats.streams.instances, "instance")));
  line("log", fmt::format("entry {}, {} not yet on disk", stats.lsn, stats.durable_lag));
  line("flushes", fmt::format("{}, p50 {}, p99 {}, {} entries each, {} in all", stats.flushes,
                              milliseconds_text(stats.flush_p50_us), milliseconds_text(stats.flush_p99_us),
                              stats.batch_entries, size_text(stats.flushed_bytes)));
  line("disk", size_text(stats.disk_free_bytes) + " free" + disk_text(stats.disk));
}

int run_stats(client::Client& client, const StatsOptions& options) {
  const auto stats = client.stats();
  if (!stats) return complain(stats.error(), format_of(options.json));
  if (options.json)
    fmt::print("{}\n", json_of(*stats).whole());
  else
    print(*stats);
  return 0;
}

// The master and the workers of a pipeline hold tasks that stand for themselves, each under a name of its own
// that says nothing to anybody else. What they work on they hold under the worker's name.
bool is_bookkeeping(const client::WorkerView& view) {
  const std::string_view name = view.worker, capabilities = view.capabilities;
  const bool has_nothing = view.leases == 0 && capabilities.empty();
  return (name == "master" && has_nothing) ||
         (name.starts_with("master-") && capabilities.starts_with("run:")) ||
         capabilities.starts_with("session:");
}

// But for what is there only to keep others away.
std::string capabilities_of(const client::WorkerView& view) {
  std::istringstream words(view.capabilities);
  std::string shown;
  for (std::string word; words >> word;) {
    if (word != pipeline::kUnreserved) shown += (shown.empty() ? "" : " ") + word;
  }
  return shown;
}

int worker_list(client::Client& client, const StatsOptions& options) {
  std::vector<client::WorkerView> all;
  client::WorkerQuery query;
  do {
    auto page = client.workers(query);
    if (!page) return complain(page.error(), format_of(options.json));
    for (client::WorkerView& view : page->workers) {
      if (options.json)
        fmt::print("{}\n", json_of(view).whole());
      else
        all.push_back(std::move(view));
    }
    query.cursor = page->cursor;
  } while (query.cursor != 0);
  if (options.json) return 0;
  table_of(all).print();
  if (const auto hidden = std::ranges::count_if(all, is_bookkeeping); hidden > 0)
    fmt::print("… and {} more by which pipelines keep their books; --json tells of them too\n", hidden);
  return 0;
}

}  // namespace

Table table_of(const std::vector<client::WorkerView>& workers) {
  Table table({{"WORKER"},
               {"LEASES", Align::right},
               {"WANTS", Align::right},
               {"SILENT", Align::right},
               {"CAPABILITIES"}});
  for (const client::WorkerView& view : workers) {
    if (is_bookkeeping(view)) continue;
    table.row({printable(view.worker), std::to_string(view.leases),
               view.capacity == 0 ? "any" : std::to_string(view.capacity),
               view.silent_for ? rough_text(*view.silent_for) : "-", printable(capabilities_of(view))});
  }
  return table;
}

void add_stats_commands(CommandLine& line) {
  line.group("worker", "Looks at workers");
  // The closure that runs the command shares the options with the parser that fills them.
  const auto add = [&](const std::string& name, const char* description,
                       int (*run)(client::Client&, const StatsOptions&)) {
    auto options = std::make_shared<StatsOptions>();
    Command command = line.command(name, description);
    command.flag("--json", options->json, "Output for programs");
    add_connection_options(command, options->connection);
    command.footer("Example: " + line.program() + " " + name);
    command.run([options, run] {
      return with_client(options->connection, format_of(options->json),
                         [&](client::Client& client) { return run(client, *options); });
    });
  };
  add("worker list", "Lists workers: those that hold tasks, then those heard of in the last ten minutes",
      worker_list);
  add("stats", "Tells how the coordinator is doing", run_stats);
}

}  // namespace baton::cli
