#include "cli/database.h"

#include <fmt/format.h>

#include <cstdlib>

#include "postgres/errors.h"
#include "postgres/migrations.h"

namespace baton::cli {

using postgres::Arguments;

namespace {

constexpr Duration kConnectTimeout = seconds(5);
constexpr int kTries = 6;  // of a call that other calls were in the way of

constexpr const char* kLetters = R"(
    (select d.dead_letter_id, v.service_name as service, case d.lane when 1 then 'outbox' else 'inbox' end as lane,
            d.message_id, d.stream_id, d.message_type, d.failures, d.deliveries,
            extract(epoch from now() - d.dead_lettered_at)::bigint as dead_seconds, d.error, d.target, d.envelope_type,
            d.partition_number, d.seq, d.status, d.failure_reason, d.parks_stream, d.dead_lettered_by, d.event_data,
            d.metadata, d.scope
     from wh_dead_letters d join wh_services v using (service_no)
     where $1 = '' or d.dead_letter_id = any(string_to_array($1, ',')::bigint[])
     order by d.dead_letter_id) as letters)";

constexpr std::string_view kNamed = "string_to_array($1, ',')::bigint[]";
constexpr std::int32_t kLettersAtOnce = 1000;  // their streams are locked meanwhile

Arguments argument(std::string_view text) { return std::move(Arguments().add(text)); }
Arguments argument(std::uint64_t number) {
  return std::move(Arguments().add(static_cast<std::int32_t>(number)));
}
std::int32_t whole_seconds(Duration time) { return static_cast<std::int32_t>(time.ms / 1000); }
std::string list_of(const StreamSource::Letters& letters) {
  return fmt::format("{}", fmt::join(letters, ","));
}

}  // namespace

Result<std::unique_ptr<Database>> Database::open(const std::string& url) {
  auto connection = postgres::Connection::open(url, kConnectTimeout);
  if (!connection) return std::unexpected(postgres::error_of(connection.error()));
  if (auto fits = postgres::check_version(**connection); !fits) return std::unexpected(fits.error());
  return std::unique_ptr<Database>(new Database(std::move(*connection)));
}

Result<postgres::Rows> Database::run(const std::string& sql, Arguments arguments) {
  const std::vector<postgres::Call> calls{{{"question", sql.c_str()}, std::move(arguments)}};
  for (int tries = 1;; ++tries) {
    auto rows = connection_->run(calls, {});
    if (rows) return std::move(rows->front());
    // Whoever was in the way has gone on, for we gave way: there is nothing to wait for.
    if (!postgres::is_passing(rows.error()) || tries == kTries)
      return std::unexpected(postgres::error_of(rows.error()));
  }
}

Result<Rows> Database::ask(const std::string& from, Arguments arguments, std::span<const Field> fields) {
  std::string columns;
  for (const Field& field : fields)
    columns += fmt::format("{}{}::text", columns.empty() ? "" : ", ", field.name);
  const auto found = run(fmt::format("select {} from {}", columns, from), std::move(arguments));
  if (!found) return std::unexpected(found.error());
  Rows rows(static_cast<std::size_t>(found->size()));
  for (int at = 0; at < found->size(); ++at) {
    for (int column = 0; column < found->columns(); ++column) {
      auto& cell = rows[static_cast<std::size_t>(at)].emplace_back();
      if (!found->is_null(at, column)) cell = found->text(at, column);
    }
  }
  return rows;
}

Result<std::uint64_t> Database::count(const std::string& of, const std::string& from, Arguments arguments) {
  const auto rows = run(fmt::format("select ({})::text from {}", of, from), std::move(arguments));
  if (!rows) return std::unexpected(rows.error());
  return static_cast<std::uint64_t>(std::atoll(std::string(rows->text(0, 0)).c_str()));
}

Result<Rows> Database::lanes() { return ask("wh_status()", {}, kLaneFields); }

Result<Rows> Database::instances(Duration stale) {
  return ask("wh_instances($1)", std::move(Arguments().add(whole_seconds(stale))), kInstanceFields);
}

Result<Rows> Database::lag(std::uint64_t count) { return ask("wh_lag($1)", argument(count), kLagFields); }

Result<Rows> Database::partitions(std::uint64_t count, Duration stale) {
  return ask("wh_partitions($1, $2)", std::move(argument(count).add(whole_seconds(stale))), kPartitionFields);
}

Result<Rows> Database::why(const std::string& message, Duration stale) {
  return ask("wh_why($1::text::uuid, $2)", std::move(argument(message).add(whole_seconds(stale))),
             kWhyFields);
}

Result<Rows> Database::letters(const Letters& letters, std::span<const Field> fields) {
  return ask(kLetters, argument(list_of(letters)), fields);
}

Result<std::uint64_t> Database::repeat(const std::string& call, const std::string& more) {
  auto last = count("coalesce(max(dead_letter_id), 0)", "wh_dead_letters", {});
  if (!last) return last;
  for (std::uint64_t total = 0;;) {
    Arguments arguments;
    arguments.add(kLettersAtOnce).add(static_cast<std::int64_t>(*last));
    if (!more.empty()) arguments.add(std::string_view(more));
    auto done = count("done", call + " as done", std::move(arguments));
    if (!done) return done;
    if (*done == 0) return total;
    total += *done;
  }
}

Result<std::uint64_t> Database::replay(const Letters& letters) {
  if (letters.empty()) return repeat("wh_replay_dead_letters(null, $1, $2)");
  return count("done", fmt::format("wh_replay_dead_letters({}) as done", kNamed), argument(list_of(letters)));
}

Result<std::uint64_t> Database::purge(const Letters& letters, Duration older_than) {
  const std::string older = fmt::format("{} milliseconds", older_than.ms);
  if (letters.empty()) return repeat("wh_purge_dead_letters($3::text::interval, null, $1, $2)", older);
  Arguments arguments = argument(list_of(letters));
  arguments.add(std::string_view(older));
  return count("done", fmt::format("wh_purge_dead_letters($2::text::interval, {}) as done", kNamed),
               std::move(arguments));
}

}  // namespace baton::cli
