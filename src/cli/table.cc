#include "cli/table.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "cli/output.h"

namespace baton::cli {
namespace {

constexpr std::string_view kGap = "  ";

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return !continues_character(byte); }));
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n\t", begin), text.size());
    shown += printable(text.substr(begin, end - begin), text.size());
    if (end < text.size()) shown += text[end];
    begin = end + 1;
  }
  return shown;
}

std::string printable(std::string_view text, std::size_t characters_max) {
  const bool is_text = is_utf8(text);
  std::string shown;
  std::size_t characters = 0;
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (is_text && continues_character(byte)) {
      shown += byte;
      continue;
    }
    if (characters++ == characters_max) return shown + "…";
    if (byte == '\n') {
      shown += "\\n";
    } else if (code < 0x20 || code == 0x7F || (code >= 0x80 && !is_text)) {
      shown += fmt::format("\\x{:02x}", code);
    } else {
      shown += byte;
    }
  }
  return shown;
}

std::string cell(std::string_view text) {
  return ::isatty(STDOUT_FILENO) == 1 ? printable(text) : printable(text, text.size());
}

std::vector<std::string> Table::lines() const {
  std::vector<std::size_t> widths;
  for (std::size_t at = 0; at < columns_.size(); ++at) {
    std::size_t width = width_of(columns_[at].name);
    for (const auto& cells : rows_) width = std::max(width, width_of(cells[at]));
    widths.push_back(width);
  }
  const auto line_of = [&](const auto& cell_at) {
    std::string line;
    for (std::size_t at = 0; at < columns_.size(); ++at) {
      const std::string& cell = cell_at(at);
      const std::string fill(widths[at] - width_of(cell), ' ');
      if (at > 0) line += kGap;
      line += columns_[at].align == Align::right ? fill + cell : cell + fill;
    }
    return line.erase(line.find_last_not_of(' ') + 1);
  };
  std::vector<std::string> lines = {
      line_of([&](std::size_t at) -> const std::string& { return columns_[at].name; })};
  for (const auto& cells : rows_)
    lines.push_back(line_of([&](std::size_t at) -> const std::string& { return cells[at]; }));
  return lines;
}

void Table::print() const {
  const bool on_terminal = ::isatty(STDOUT_FILENO) == 1;
  bool is_first = true;
  for (const std::string& line : lines()) {
    const bool bold = on_terminal && std::exchange(is_first, false);
    to_output("{}{}{}\n", bold ? "\x1b[1m" : "", line, bold ? "\x1b[0m" : "");
  }
}

}  // namespace baton::cli
