#include "cli/dead_letter_commands.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/json_object.h"
#include "cli/quantities.h"

namespace baton::cli {
namespace {

constexpr const char* kLetters =
    "(select d.dead_letter_id, v.service_name as service, case d.lane when 1 then 'outbox' else 'inbox' end "
    "as lane, "
    "d.message_id, d.stream_id, d.message_type, d.failures, d.deliveries, "
    "extract(epoch from now() - d.dead_lettered_at)::bigint as dead_seconds, d.error from wh_dead_letters d "
    "join wh_services v using (service_no) order by d.dead_letter_id) as letters";

Result<std::string> letter_of(const std::string& text) {
  if (auto number = read_number(text, 1, INT64_MAX); !number) return std::unexpected(number.error());
  return text;
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

}  // namespace

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

Status dead_show(Database& database, const StreamOptions& options) {
  for (const std::string& text : options.letters) {
    const auto letter = letter_of(text);
    if (!letter) return std::unexpected(letter.error());
    const auto rows = database.ask("wh_dead_letters d where dead_letter_id = $1::text::bigint",
                                   argument(*letter), "row_to_json(d)::text");
    if (!rows) return std::unexpected(rows.error());
    if (rows->size() == 0) return failure(Errc::not_found, "there is no dead letter " + text);
    fmt::print("{}\n", rows->text(0, 0));
  }
  return {};
}

Status dead_replay(Database& database, const StreamOptions& options) {
  if (auto fits = choose(options); !fits) return fits;
  const auto rows = database.ask(
      options.all ? "(select dead_letter_id from wh_dead_letters) as l(letter)"
                  : "unnest(string_to_array($1, ',')::bigint[]) as l(letter)",
      options.all ? postgres::Arguments() : argument(fmt::format("{}", fmt::join(options.letters, ","))),
      "(count(*) filter (where wh_replay_dead_letter(letter)))::text, count(*)::text");
  if (!rows) return std::unexpected(rows.error());
  say(options, "put back", "replayed", rows->text(0, 0));
  if (rows->text(0, 0) == rows->text(0, 1)) return {};
  return failure(Errc::not_found, "the other dead letters are not there");
}

Status dead_purge(Database& database, const StreamOptions& options) {
  if (auto fits = choose(options); !fits) return fits;
  postgres::Arguments arguments = argument(fmt::format("{}", fmt::join(options.letters, ",")));
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

}  // namespace baton::cli
