#include "postgres/migrations.h"

#include "base/time.h"
#include "postgres/connection.h"
#include "postgres/errors.h"

namespace baton::postgres {
namespace {

constexpr Duration kConnectTimeout = seconds(10);

// The oldest baton, by the newest version that it has, which the schema with all our versions still serves:
// what that one calls is there, and does what it did. A version that breaks this raises it to its own.
constexpr int kServesFrom = 11;

// The number is any that others are unlikely to use; whoever comes second waits for the first to commit.
// Functions keep the search path that they were made under. "$user" in it would be another schema for another
// user, so it is replaced by the one where tables are made.
constexpr const char* kBegin = R"sql(
  begin isolation level read committed;
  set local client_min_messages = warning;
  select pg_advisory_xact_lock(4851905230914);
  select set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);
  create table if not exists wh_schema_versions (
    version integer primary key, name text not null, serves_from integer not null,
    applied_at timestamptz not null default now());
)sql";

struct Schema {
  int version;
  int serves_from;
};
constexpr Statement kSchema{
    "schema", "select version, serves_from from wh_schema_versions order by version desc limit 1"};

Result<Schema> schema_of(Connection& connection) {
  auto rows = connection.run(std::vector<Call>{{kSchema, {}}}, {});
  if (!rows) return std::unexpected(error_of(rows.error()));
  const Rows& newest = rows->front();
  return newest.size() == 0 ? Schema{} : Schema{newest.int4(0, 0), newest.int4(0, 1)};
}

std::unexpected<Error> wrong(int version, const std::string& advice) {
  return failure(Errc::unsupported_version, "the database has version " + std::to_string(version) +
                                                " of the schema, this baton has " +
                                                std::to_string(migrations().back().version) + ": " + advice);
}

// What is newer than this baton may still serve it.
Status check_not_beyond_us(const Schema& schema) {
  const int known = migrations().back().version;
  if (schema.version <= known || schema.serves_from <= known) return {};
  return wrong(schema.version, "use a newer baton");
}

Result<int> apply(Connection& connection) {
  if (auto begun = connection.execute(kBegin); !begun) return std::unexpected(error_of(begun.error()));
  const auto schema = schema_of(connection);
  if (!schema) return std::unexpected(schema.error());
  if (auto fits = check_not_beyond_us(*schema); !fits) return std::unexpected(fits.error());
  int added = 0;
  for (const Migration& migration : migrations()) {
    if (migration.version <= schema->version) continue;
    const std::string note = "insert into wh_schema_versions (version, name, serves_from) values (" +
                             std::to_string(migration.version) + ", '" + std::string(migration.name) + "', " +
                             std::to_string(kServesFrom) + ");";
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
  const auto schema = schema_of(connection);
  if (!schema) return std::unexpected(schema.error());
  if (schema->version < migrations().back().version)
    return wrong(schema->version, "migrate the database (baton stream migrate)");
  return check_not_beyond_us(*schema);
}

}  // namespace baton::postgres
