// Streams on PostgreSQL, as operators see them: the questions are functions there (sql/011_operations.sql).
#pragma once

#include <memory>
#include <string>

#include "cli/stream_source.h"
#include "postgres/connection.h"

namespace baton::cli {

class Database final : public StreamSource {
 public:
  static Result<std::unique_ptr<Database>> open(const std::string& url);  // which has the schema

  Result<Rows> lanes() override;
  Result<Rows> instances(Duration stale) override;
  Result<Rows> lag(std::uint64_t count) override;
  Result<Rows> partitions(std::uint64_t count, Duration stale) override;
  Result<Rows> why(const std::string& message, Duration stale) override;
  Result<Rows> letters(const Letters& letters, std::span<const Field> fields) override;
  Result<std::uint64_t> replay(const Letters& letters) override;
  Result<std::uint64_t> purge(const Letters& letters, Duration older_than) override;

 private:
  explicit Database(std::unique_ptr<postgres::Connection> connection) : connection_(std::move(connection)) {}
  // Columns are the fields, as text.
  Result<Rows> ask(const std::string& from, postgres::Arguments arguments, std::span<const Field> fields);
  Result<std::uint64_t> count(const std::string& of, const std::string& from, postgres::Arguments arguments);
  // A call that is given how many letters to take and which is the last, and perhaps one argument more: again
  // and again, until there are none left. Those that die meanwhile are left alone.
  Result<std::uint64_t> repeat(const std::string& call, const std::string& more = {});
  Result<postgres::Rows> run(const std::string& sql, postgres::Arguments arguments);

  std::unique_ptr<postgres::Connection> connection_;
};

}  // namespace baton::cli
