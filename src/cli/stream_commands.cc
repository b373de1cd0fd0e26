#include "cli/stream_commands.h"

#include <fmt/format.h>

#include <functional>
#include <memory>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/database.h"
#include "cli/dead_letter_commands.h"
#include "cli/json_object.h"
#include "cli/quantities.h"
#include "postgres/migrations.h"

namespace baton::cli {
namespace {

using postgres::Arguments;

Arguments stale_seconds(const StreamOptions& options) {
  return argument(static_cast<std::int32_t>(options.stale.ms / 1000));
}

Status migrate(Database&, const StreamOptions& options) {
  const auto added = postgres::migrate(options.database);
  if (!added) return std::unexpected(added.error());
  const int version = postgres::migrations().back().version;
  if (options.json) {
    fmt::print("{}\n", JsonObject()
                           .number("version", static_cast<std::uint64_t>(version))
                           .number("added", static_cast<std::uint64_t>(*added))
                           .whole());
  } else if (*added == 0) {
    fmt::print("the database is at version {} already\n", version);
  } else {
    fmt::print("added {}: the database is at version {}\n",
               counted(static_cast<std::uint64_t>(*added), "migration"), version);
  }
  return {};
}

Status status(Database& database, const StreamOptions& options) {
  if (options.json) {
    if (auto lanes = database.print_json("wh_status()"); !lanes) return lanes;
    return database.print_json("wh_instances($1)", stale_seconds(options));
  }
  const auto lanes =
      database.ask("wh_status()", {},
                   "service, lane, waiting::text, held::text, dead::text, streams::text, held_streams::text, "
                   "parked_streams::text, oldest_claimable_seconds::text as oldest_seconds");
  if (!lanes) return std::unexpected(lanes.error());
  const auto instances =
      database.ask("wh_instances($1)", stale_seconds(options),
                   "service, instance::text, rank::text, host, process::text, silent_seconds::text as "
                   "silent_seconds, held_streams::text, held_messages::text, "
                   "case when is_stale then 'stale' else '' end");
  if (!instances) return std::unexpected(instances.error());
  constexpr Align right = Align::right;
  print(*lanes, {{"SERVICE"},
                 {"LANE"},
                 {"WAITING", right},
                 {"HELD", right},
                 {"DEAD", right},
                 {"STREAMS", right},
                 {"HELD", right},
                 {"PARKED", right},
                 {"OLDEST", right}});
  fmt::print("\n");
  print(*instances, {{"SERVICE"},
                     {"INSTANCE"},
                     {"RANK", right},
                     {"HOST"},
                     {"PROCESS", right},
                     {"SILENT", right},
                     {"STREAMS", right},
                     {"MESSAGES", right},
                     {""}});
  return {};
}

Status lag(Database& database, const StreamOptions& options) {
  if (options.json)
    return database.print_json("wh_lag($1)", argument(static_cast<std::int32_t>(options.count)));
  const auto rows = database.ask("wh_lag($1)", argument(static_cast<std::int32_t>(options.count)),
                                 "service, lane, stream::text, partition_number::text, messages::text, "
                                 "waits_seconds::text as waits_seconds, state");
  if (!rows) return std::unexpected(rows.error());
  print(*rows, {{"SERVICE"},
                {"LANE"},
                {"STREAM"},
                {"PARTITION", Align::right},
                {"MESSAGES", Align::right},
                {"WAITS", Align::right},
                {"STATE"}});
  return {};
}

Status partitions(Database& database, const StreamOptions& options) {
  Arguments arguments = argument(static_cast<std::int32_t>(options.count));
  arguments.add(static_cast<std::int32_t>(options.stale.ms / 1000));
  if (options.json) return database.print_json("wh_partitions($1, $2)", std::move(arguments));
  const auto rows =
      database.ask("wh_partitions($1, $2)", std::move(arguments),
                   "service, lane, partition_number::text, streams::text, messages::text, "
                   "oldest_claimable_seconds::text as oldest_seconds, coalesce(offered_to::text, 'nobody')");
  if (!rows) return std::unexpected(rows.error());
  print(*rows, {{"SERVICE"},
                {"LANE"},
                {"PARTITION", Align::right},
                {"STREAMS", Align::right},
                {"MESSAGES", Align::right},
                {"OLDEST", Align::right},
                {"OFFERED TO"}});
  return {};
}

Status metrics(Database& database, const StreamOptions& options) {
  const auto rows = database.ask("wh_metrics($1)", stale_seconds(options));
  if (!rows) return std::unexpected(rows.error());
  for (int row = 0; row < rows->size(); ++row) fmt::print("{}\n", rows->text(row, 0));
  return {};
}

Status why(Database& database, const StreamOptions& options) {
  Arguments arguments = argument(options.message);
  arguments.add(static_cast<std::int32_t>(options.stale.ms / 1000));
  const std::string from = "wh_why($1::text::uuid, $2)";
  if (options.json) return database.print_json(from, std::move(arguments));
  const auto rows = database.ask(from, std::move(arguments));
  if (!rows) return std::unexpected(rows.error());
  for (int row = 0; row < rows->size(); ++row)
    fmt::print("{:<31} {}\n", rows->text(row, 0), printable(rows->text(row, 1), 1000));
  return {};
}

using Action = Status (*)(Database&, const StreamOptions&);

int run(const StreamOptions& options, Action action) {
  const Format format = format_of(options.json);
  auto database = Database::open(options.database);
  if (!database) return complain(database.error(), format);
  if (action != migrate) {
    if (auto fits = postgres::check_version(database->connection()); !fits)
      return complain(fits.error(), format);
  }
  if (auto done = action(*database, options); !done) return complain(done.error(), format);
  return 0;
}

}  // namespace

void add_stream_commands(CommandLine& line) {
  line.group("stream", "Looks after streams on PostgreSQL: schema, backlog, dead letters");
  line.group("stream dead", "Messages that nobody tries any more: lists, shows, replays, purges them");
  const std::string program = line.program();
  const auto add = [&](const std::string& name, const char* description, const std::string& example,
                       Action action, const std::function<void(Command&, StreamOptions&)>& more = {}) {
    auto options = std::make_shared<StreamOptions>();
    Command command = line.command("stream " + name, description);
    if (more) more(command, *options);
    command.option("--database URL", options->database, "postgresql://user@host/name, or as libpq takes it")
        .environment("BATON_DATABASE");
    command.flag("--json", options->json, "Output for programs: a line for each row");
    command.footer("Example: " + program + " stream " + name + example + " --database postgresql:///shop");
    command.run([options, action] { return run(*options, action); });
  };
  const auto stale = [](Command& command, StreamOptions& options) {
    command.duration("--stale TIME", options.stale, "An instance silent for longer counts as gone");
  };
  const auto letters = [](Command& command, StreamOptions& options) {
    command.arguments("letter", options.letters, "Numbers of dead letters");
  };
  const auto letters_or_all = [](Command& command, StreamOptions& options) {
    command.some_arguments("letter", options.letters, "Numbers of dead letters");
    command.flag("--all", options.all, "All of them");
  };
  add("migrate", "Brings a database to the newest version of the schema", "", migrate);
  add("status", "Shows what waits, is held and is dead, and the instances", "", status, stale);
  add("metrics", "Prints the same as text for Prometheus", "", metrics, stale);
  add("lag", "Lists the streams that have waited for longest, and why", "", lag,
      [](Command& command, StreamOptions& options) {
        command.number("--count N", options.count, "Streams at most", 1, 10'000);
      });
  add("partitions", "Lists the partitions with the most messages, and whose they are", "", partitions,
      [&](Command& command, StreamOptions& options) {
        command.number("--count N", options.count, "Partitions at most", 1, 10'000);
        stale(command, options);
      });
  add("why", "Tells why a message is not being handled", " 01930000-0000-7000-8000-000000000001", why,
      [&](Command& command, StreamOptions& options) {
        command.argument("message", options.message, "Id of the message");
        stale(command, options);
      });
  add("dead list", "Lists dead letters", "", dead_list);
  add("dead show", "Shows all there is of dead letters, as JSON", " 7", dead_show, letters);
  add("dead replay", "Puts dead letters back into their old places", " 7", dead_replay, letters_or_all);
  add("dead purge", "Forgets dead letters, and lets streams behind them go on", " --all --older-than 7d",
      dead_purge, [&](Command& command, StreamOptions& options) {
        letters_or_all(command, options);
        command.duration("--older-than TIME", options.older_than,
                         "Only those that have been dead for longer");
      });
}

}  // namespace baton::cli
