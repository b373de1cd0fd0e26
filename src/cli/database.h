// What a PostgreSQL database says, as text: the questions are functions there (sql/011_operations.sql).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/table.h"
#include "postgres/connection.h"

namespace baton::cli {

class Database {
 public:
  static Result<Database> open(const std::string& url);

  postgres::Connection& connection() { return *connection_; }

  // Columns have to be text.
  Result<postgres::Rows> ask(const std::string& from, postgres::Arguments arguments = {},
                             const std::string& columns = "*");
  // A line of JSON for each row.
  Status print_json(const std::string& from, postgres::Arguments arguments = {});

 private:
  explicit Database(std::unique_ptr<postgres::Connection> connection) : connection_(std::move(connection)) {}
  Result<postgres::Rows> run(const std::string& sql, postgres::Arguments arguments);

  std::deque<std::string> names_;  // of statements, which the connection remembers
  std::unique_ptr<postgres::Connection> connection_;
};

postgres::Arguments argument(std::string_view text);
postgres::Arguments argument(std::int32_t number);

// As a table; columns whose name ends in _seconds are times.
void print(const postgres::Rows& rows, const std::vector<Column>& columns);

}  // namespace baton::cli
