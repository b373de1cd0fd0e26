#include "cli/database.h"

#include <fmt/format.h>

#include <cstdlib>

#include "cli/quantities.h"
#include "postgres/errors.h"

namespace baton::cli {

using postgres::Arguments;
using postgres::Rows;

namespace {

constexpr Duration kConnectTimeout = seconds(5);

std::string seconds_text(std::string_view count) {
  return count.empty() ? "-" : rough_text(seconds(std::atoll(std::string(count).c_str())));
}

}  // namespace

Result<Database> Database::open(const std::string& url) {
  if (url.empty())
    return failure(Errc::invalid_request, "which database? Give --database URL, or set BATON_DATABASE");
  auto connection = postgres::Connection::open(url, kConnectTimeout);
  if (!connection) return std::unexpected(postgres::error_of(connection.error()));
  return Database(std::move(*connection));
}

Result<Rows> Database::run(const std::string& sql, Arguments arguments) {
  const std::string& name = names_.emplace_back("question" + std::to_string(names_.size()));
  const std::vector<postgres::Call> calls{{{name.c_str(), sql.c_str()}, std::move(arguments)}};
  auto rows = connection_->run(calls, {});
  if (!rows) return std::unexpected(postgres::error_of(rows.error()));
  return std::move(rows->front());
}

Result<Rows> Database::ask(const std::string& from, Arguments arguments, const std::string& columns) {
  return run(fmt::format("select {} from {}", columns, from), std::move(arguments));
}

Status Database::print_json(const std::string& from, Arguments arguments) {
  const auto rows = run(fmt::format("select row_to_json(r)::text from (select * from {}) as r", from),
                        std::move(arguments));
  if (!rows) return std::unexpected(rows.error());
  for (int row = 0; row < rows->size(); ++row) fmt::print("{}\n", rows->text(row, 0));
  return {};
}

Arguments argument(std::string_view text) { return std::move(Arguments().add(text)); }
Arguments argument(std::int32_t number) { return std::move(Arguments().add(number)); }

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

}  // namespace baton::cli
