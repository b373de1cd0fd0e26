#include "cli/stream_commands.h"

#include <fmt/format.h>

#include <functional>
#include <memory>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/coordinator_streams.h"
#include "cli/database.h"
#include "cli/dead_letter_commands.h"
#include "cli/json_object.h"
#include "cli/quantities.h"
#include "cli/table.h"
#include "postgres/maintenance.h"
#include "postgres/migrations.h"
#include "stream/uuid.h"

namespace baton::cli {
namespace {

std::unexpected<Error> which_database() {
  return failure(Errc::invalid_request, "which database? Give --database URL, or set BATON_DATABASE");
}

Status maintain(const StreamOptions& options) {
  if (options.database.empty()) return which_database();
  const auto forgotten = postgres::maintain(options.database);
  if (!forgotten) return std::unexpected(forgotten.error());
  if (options.json) {
    fmt::print("{}\n", JsonObject().number("forgotten", *forgotten).whole());
  } else {
    fmt::print("forgot {} past their time\n", counted(*forgotten, "row"));
  }
  return {};
}

Status migrate(const StreamOptions& options) {
  if (options.database.empty()) return which_database();
  const auto added = postgres::migrate(options.database);
  // The rights that the page lists are those of a service, which does not migrate.
  if (!added && added.error().message.find("docs/streams.md") != std::string::npos)
    return failure(
        added.error().code,
        "whoever migrates needs CREATE on the schema, and owns what is there already: connect as the "
        "owner of the database");
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

Status show(const Result<Rows>& rows, std::span<const Field> fields, const StreamOptions& options) {
  if (!rows) return std::unexpected(rows.error());
  options.json ? print_json(fields, *rows) : print_table(fields, *rows);
  return {};
}

Status status(StreamSource& source, const StreamOptions& options) {
  if (auto lanes = show(source.lanes(), kLaneFields, options); !lanes) return lanes;
  if (!options.json) fmt::print("\n");
  return show(source.instances(options.stale), kInstanceFields, options);
}

constexpr std::uint64_t kPartitionsMeasured = 10;  // there are ten thousand, too many for a time series each

Status metrics(StreamSource& source, const StreamOptions& options) {
  const auto lanes = source.lanes();
  if (!lanes) return std::unexpected(lanes.error());
  const auto instances = source.instances(options.stale);
  if (!instances) return std::unexpected(instances.error());
  const auto partitions = source.partitions(kPartitionsMeasured, options.stale);
  if (!partitions) return std::unexpected(partitions.error());
  print_metrics(*lanes, *instances, *partitions);
  return {};
}

Status lag(StreamSource& source, const StreamOptions& options) {
  return show(source.lag(options.count), kLagFields, options);
}

Status partitions(StreamSource& source, const StreamOptions& options) {
  return show(source.partitions(options.count, options.stale), kPartitionFields, options);
}

Status why(StreamSource& source, const StreamOptions& options) {
  if (!stream::parse_uuid(options.message))
    return failure(
        Errc::invalid_request,
        "'" + options.message + "' is not the id of a message, such as 01930000-0000-7000-8000-000000000001");
  const auto answers = source.why(options.message, options.stale);
  if (!answers || options.json) return show(answers, kWhyFields, options);
  for (const Row& row : *answers)
    fmt::print("{:<31} {}\n", row[0].value_or(""), printable(row[1].value_or(""), 1000));
  return {};
}

using Action = Status (*)(StreamSource&, const StreamOptions&);

// What the command line says counts more than the environment.
Status choose_source(const CommandLine& line, StreamOptions& options) {
  if (!line.has("--connect")) return {};
  if (line.has("--database"))
    return failure(Errc::invalid_request, "--connect and --database name two places: give one of them");
  options.database.clear();
  return {};
}

Status run(const StreamOptions& options, Action action) {
  if (!options.database.empty()) {
    auto database = Database::open(options.database);
    return database ? action(**database, options) : std::unexpected(database.error());
  }
  const auto client = connect(options.connection);
  if (!client) return std::unexpected(client.error());
  CoordinatorStreams streams(**client);
  return action(streams, options);
}

int exit_code(const Status& done, const StreamOptions& options) {
  if (done) return 0;
  return complain_of_connection(done.error(), format_of(options.json));
}

constexpr const char* kDatabase = "postgresql://user@host/name, or as libpq takes it";

void add_for_databases(CommandLine& line, const std::string& name, const char* description,
                       Status (*action)(const StreamOptions&)) {
  auto options = std::make_shared<StreamOptions>();
  Command command = line.command("stream " + name, description);
  command.option("--database URL", options->database, kDatabase).environment("BATON_DATABASE");
  command.flag("--json", options->json, "Output for programs");
  command.footer("Example: " + line.program() + " stream " + name + " --database postgresql:///shop");
  command.run([options, action] { return exit_code(action(*options), *options); });
}

}  // namespace

void add_stream_commands(CommandLine& line) {
  line.group("stream",
             "Looks after streams, of a coordinator or on PostgreSQL: backlog, dead letters, schema");
  line.group("stream dead", "Messages that nobody tries any more: lists, shows, replays, purges them");
  const std::string program = line.program();
  const auto add = [&](const std::string& name, const char* description, const std::string& example,
                       Action action, const std::function<void(Command&, StreamOptions&)>& more = {}) {
    auto options = std::make_shared<StreamOptions>();
    Command command = line.command("stream " + name, description);
    if (more) more(command, *options);
    command
        .option("--database URL", options->database,
                "Streams on PostgreSQL, instead of a coordinator's: postgresql://user@host/name")
        .environment("BATON_DATABASE");
    command.flag("--json", options->json, "Output for programs: a line for each row");
    add_connection_options(command, options->connection);
    command.footer("Example: " + program + " stream " + name + example);
    command.run([options, action, &line] {
      const Status chosen = choose_source(line, *options);
      return exit_code(chosen ? run(*options, action) : chosen, *options);
    });
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
  add_for_databases(line, "migrate", "Brings a database to the newest version of the schema", migrate);
  add_for_databases(line, "maintain", "Forgets what a database has kept for long enough", maintain);
  add("status", "Shows what waits, is held and is dead, and the instances", "", status, stale);
  add("metrics", "Prints the same as text for Prometheus", " --database postgresql:///shop", metrics, stale);
  add("lag", "Lists the streams that have waited for longest, and why", "", lag,
      [](Command& command, StreamOptions& options) {
        command.number("--count N", options.count, "Streams at most", 1, 1000);
      });
  add("partitions", "Lists the partitions with the most messages, and whose they are", "", partitions,
      [&](Command& command, StreamOptions& options) {
        command.number("--count N", options.count, "Partitions at most", 1, 1000);
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
