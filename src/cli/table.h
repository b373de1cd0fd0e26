// Rows of text in columns, for people. Programs get JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace baton::cli {

enum class Align : bool { left, right };

struct Column {
  std::string name;
  Align align = Align::left;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  // A line for the names, then one for each row.
  std::vector<std::string> lines() const;
  void print() const;  // with the names in bold, if it is a terminal

 private:
  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Safe to show: control characters and broken UTF-8 are escaped, and what is longer ends in "…".
std::string printable(std::string_view text, std::size_t characters_max = 60);
// The same for a cell of a table: on a terminal, where lines should not be broken, it is cut to some 60
// characters.
std::string cell(std::string_view text);
// The same for all of a text, whose lines and tabs stay as they are.
std::string printable_lines(std::string_view text);

std::size_t width_of(std::string_view text);  // in characters

}  // namespace baton::cli
