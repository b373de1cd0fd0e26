#include "cli/stream_commands.h"

#include <fmt/format.h>

#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/json_object.h"
#include "cli/quantities.h"
#include "cli/table.h"
#include "postgres/connection.h"
#include "postgres/errors.h"
#include "postgres/migrations.h"
#include "stream/work_coordinator.h"

namespace baton::cli {
namespace {

using postgres::Arguments;
using postgres::Connection;
using postgres::Rows;

constexpr Duration kConnectTimeout = seconds(5);

struct StreamOptions {
  std::string database;
  bool json = false;
  std::string message;               // why
  std::uint64_t count = 20;          // lag
  Duration stale = stream::kStale;   // status, why
  std::vector<std::string> letters;  // dead show, replay, purge
  bool all = false;                  // dead replay, purge
  Duration older_than;               // dead purge
};

// What the database says, as text: the questions are functions there (sql/011_operations.sql).
class Database {
 public:
  static Result<Database> open(const std::string& url) {
    if (url.empty())
      return failure(Errc::invalid_request, "which database? Give --database URL, or set BATON_DATABASE");
    auto connection = Connection::open(url, kConnectTimeout);
    if (!connection) return std::unexpected(postgres::error_of(connection.error()));
    return Database(std::move(*connection));
  }
  Connection& connection() { return *connection_; }

  // Values come as text, whatever they are.
  Result<Rows> ask(const std::string& from, Arguments arguments = {}, const std::string& columns = "*") {
    return run(fmt::format("select {} from {}", columns, from), std::move(arguments));
  }
  // A line of JSON for each row.
  Status print_json(const std::string& from, Arguments arguments = {}) {
    const auto rows = run(fmt::format("select row_to_json(r)::text from (select * from {}) as r", from),
                          std::move(arguments));
    if (!rows) return std::unexpected(rows.error());
    for (int row = 0; row < rows->size(); ++row) fmt::print("{}\n", rows->text(row, 0));
    return {};
  }

 private:
  explicit Database(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}

  Result<Rows> run(const std::string& sql, Arguments arguments) {
    const std::string& name = names_.emplace_back("question" + std::to_string(names_.size()));
    const std::vector<postgres::Call> calls{{{name.c_str(), sql.c_str()}, std::move(arguments)}};
    auto rows = connection_->run(calls, {});
    if (!rows) return std::unexpected(postgres::error_of(rows.error()));
    return std::move(rows->front());
  }

  std::deque<std::string> names_;  // of statements, which the connection remembers
  std::unique_ptr<Connection> connection_;
};

std::string seconds_text(std::string_view count) {
  return count.empty() ? "-" : rough_text(seconds(std::atoll(std::string(count).c_str())));
}

Arguments text_of(std::string_view value) { return std::move(Arguments().add(value)); }
Arguments number_of(std::uint64_t value) {
  return std::move(Arguments().add(static_cast<std::int32_t>(value)));
}
Arguments stale_seconds(const StreamOptions& options) {
  return number_of(static_cast<std::uint64_t>(options.stale.ms / 1000));
}

// Rows as a table; columns whose name ends in _seconds are times.
void print(const Rows& rows, const std::vector<Column>& columns) {
  Table table(columns);
  for (int row = 0; row < rows.size(); ++row) {
    std::vector<std::string> cells;
    for (int column = 0; column < rows.columns(); ++column) {
      const std::string_view value = rows.text(row, column);
      cells.push_back(rows.name(column).ends_with("_seconds") ? seconds_text(value) : printable(value, 100));
    }
    table.row(std::move(cells));
  }
  table.print();
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
  if (options.json) return database.print_json("wh_lag($1)", number_of(options.count));
  const auto rows = database.ask("wh_lag($1)", number_of(options.count),
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

Status why(Database& database, const StreamOptions& options) {
  Arguments arguments = text_of(options.message);
  arguments.add(static_cast<std::int32_t>(options.stale.ms / 1000));
  const std::string from = "wh_why($1::text::uuid, $2)";
  if (options.json) return database.print_json(from, std::move(arguments));
  const auto rows = database.ask(from, std::move(arguments));
  if (!rows) return std::unexpected(rows.error());
  for (int row = 0; row < rows->size(); ++row)
    fmt::print("{:<31} {}\n", rows->text(row, 0), printable(rows->text(row, 1), 1000));
  return {};
}

constexpr const char* kLetters =
    "(select d.dead_letter_id, v.service_name as service, case d.lane when 1 then 'outbox' else 'inbox' end "
    "as lane, "
    "d.message_id, d.stream_id, d.message_type, d.failures, d.deliveries, "
    "extract(epoch from now() - d.dead_lettered_at)::bigint as dead_seconds, d.error from wh_dead_letters d "
    "join wh_services v using (service_no) order by d.dead_letter_id) as letters";

Status dead_list(Database& database, const StreamOptions& options) {
  if (options.json) return database.print_json(kLetters);
  const auto rows =
      database.ask(kLetters, {},
                   "dead_letter_id::text, service, lane, message_id::text, message_type, failures::text, "
                   "dead_seconds::text as dead_seconds, coalesce(error, '')");
  if (!rows) return std::unexpected(rows.error());
  print(*rows, {{"LETTER", Align::right},
                {"SERVICE"},
                {"LANE"},
                {"MESSAGE"},
                {"TYPE"},
                {"FAILURES", Align::right},
                {"SINCE", Align::right},
                {"ERROR"}});
  return {};
}

Result<std::string> letter_of(const std::string& text) {
  if (auto number = read_number(text, 1, INT64_MAX); !number) return std::unexpected(number.error());
  return text;
}

Status dead_show(Database& database, const StreamOptions& options) {
  for (const std::string& text : options.letters) {
    const auto letter = letter_of(text);
    if (!letter) return std::unexpected(letter.error());
    const auto rows = database.ask("wh_dead_letters d where dead_letter_id = $1::text::bigint",
                                   text_of(*letter), "row_to_json(d)::text");
    if (!rows) return std::unexpected(rows.error());
    if (rows->size() == 0) return failure(Errc::not_found, "there is no dead letter " + text);
    fmt::print("{}\n", rows->text(0, 0));
  }
  return {};
}

Status choose(const StreamOptions& options) {
  for (const std::string& text : options.letters) {
    if (auto letter = letter_of(text); !letter) return std::unexpected(letter.error());
  }
  if (options.letters.empty() != options.all)
    return failure(Errc::invalid_request, "which letters? Name them, or say --all");
  return {};
}

void say(const StreamOptions& options, const char* what, const char* word, std::string_view count) {
  const auto number = static_cast<std::uint64_t>(std::atoll(std::string(count).c_str()));
  if (options.json)
    fmt::print("{}\n", JsonObject().number(word, number).whole());
  else
    fmt::print("{} {}\n", what, counted(number, "dead letter"));
}

Status dead_replay(Database& database, const StreamOptions& options) {
  if (auto fits = choose(options); !fits) return fits;
  const auto rows =
      database.ask(options.all ? "(select dead_letter_id from wh_dead_letters) as l(letter)"
                               : "unnest(string_to_array($1, ',')::bigint[]) as l(letter)",
                   options.all ? Arguments() : text_of(fmt::format("{}", fmt::join(options.letters, ","))),
                   "(count(*) filter (where wh_replay_dead_letter(letter)))::text, count(*)::text");
  if (!rows) return std::unexpected(rows.error());
  say(options, "put back", "replayed", rows->text(0, 0));
  if (rows->text(0, 0) == rows->text(0, 1)) return {};
  return failure(Errc::not_found, "the other dead letters are not there");
}

Status dead_purge(Database& database, const StreamOptions& options) {
  if (auto fits = choose(options); !fits) return fits;
  Arguments arguments = text_of(fmt::format("{}", fmt::join(options.letters, ",")));
  arguments.add(std::string_view(fmt::format("{} milliseconds", options.older_than.ms)));
  const auto rows = database.ask(
      "wh_purge_dead_letters($2::text::interval, case when $1 <> '' then string_to_array($1, ',')::bigint[] "
      "end) "
      "as purged",
      std::move(arguments), "purged::text");
  if (!rows) return std::unexpected(rows.error());
  say(options, "forgot", "purged", rows->text(0, 0));
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
  add("lag", "Lists the streams that have waited for longest, and why", "", lag,
      [](Command& command, StreamOptions& options) {
        command.number("--count N", options.count, "Streams at most", 1, 10'000);
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
