#include "postgres/migrations.h"

#include "base/time.h"
#include "postgres/connection.h"
#include "postgres/errors.h"

namespace baton::postgres {
namespace {

constexpr Duration kConnectTimeout = seconds(10);

// The number is any that others are unlikely to use; whoever comes second waits for the first to commit.
// Functions keep the search path that they were made under. "$user" in it would be another schema for another
// user, so it is replaced by the one where tables are made.
constexpr const char* kBegin = R"sql(
  begin;
  set local client_min_messages = warning;
  select pg_advisory_xact_lock(4851905230914);
  select set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
  create table if not exists wh_schema_versions (
    version integer primary key, name text not null, applied_at timestamptz not null default now());
)sql";

constexpr Statement kVersion{"schema_version", "select coalesce(max(version), 0) from wh_schema_versions"};

Result<int> version_of(Connection& connection) {
  auto rows = connection.run(std::vector<Call>{{kVersion, {}}}, {});
  if (!rows) return std::unexpected(error_of(rows.error()));
  return rows->front().int4(0, 0);
}

std::unexpected<Error> wrong(int version, const std::string& advice) {
  return failure(Errc::unsupported_version, "the database has version " + std::to_string(version) +
                                                " of the schema, this baton has " +
                                                std::to_string(migrations().back().version) + ": " + advice);
}

Result<int> apply(Connection& connection) {
  if (auto begun = connection.execute(kBegin); !begun) return std::unexpected(error_of(begun.error()));
  const auto known = version_of(connection);
  if (!known) return known;
  const int version = *known;
  if (version > migrations().back().version) return wrong(version, "use a newer baton");
  int added = 0;
  for (const Migration& migration : migrations()) {
    if (migration.version <= version) continue;
    const std::string note = "insert into wh_schema_versions (version, name) values (" +
                             std::to_string(migration.version) + ", '" + std::string(migration.name) + "');";
    if (auto done = connection.execute(std::string(migration.sql) + note); !done) {
      Error error = error_of(done.error());
      error.message = std::string(migration.name) + ": " + error.message;
      return std::unexpected(error);
    }
    ++added;
  }
  if (auto committed = connection.execute("commit"); !committed)
    return std::unexpected(error_of(committed.error()));
  return added;
}

}  // namespace

Result<int> migrate(const std::string& url) {
  auto connection = Connection::open(url, kConnectTimeout);
  if (!connection) return std::unexpected(error_of(connection.error()));
  return apply(**connection);  // what is not committed is undone when the connection goes
}

Status check_version(Connection& connection) {
  const auto version = version_of(connection);
  if (!version) return std::unexpected(version.error());
  const int known = migrations().back().version;
  if (*version == known) return {};
  return wrong(*version,
               *version > known ? "use a newer baton" : "migrate the database (baton stream migrate)");
}

}  // namespace baton::postgres
