#include "pipeline/log_book.h"

#include <utility>

namespace baton::pipeline {

std::vector<std::string> lines_of(std::string_view text, std::uint64_t first) {
  std::vector<std::string> lines;
  for (std::uint64_t number = 0; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (number >= first) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void LogBook::add(const LogLine& line) {
  const std::lock_guard lock(mutex_);
  Log& log = logs_[{line.module, line.attempt}];
  if (log.text.size() + line.text.size() >= kBytesMax) {
    ++log.left_out;
    return;
  }
  log.text += line.text;
  log.text += '\n';
}

std::vector<Said> LogBook::take(std::size_t bytes_max) {
  std::vector<Said> all;
  const std::lock_guard lock(mutex_);
  for (auto& [whose, log] : logs_) {
    if (log.taken_bytes == log.text.size() || bytes_max == 0) continue;
    // Up to the end of a line, and one line at least, however long.
    const std::size_t within = log.text.rfind('\n', log.taken_bytes + bytes_max);
    const bool fits = within != std::string::npos && within >= log.taken_bytes;
    const std::size_t end = (fits ? within : log.text.find('\n', log.taken_bytes)) + 1;
    const std::string_view piece = std::string_view(log.text).substr(log.taken_bytes, end - log.taken_bytes);
    Said& said = all.emplace_back();
    said = {whose.first, whose.second, log.taken_lines, lines_of(piece)};
    log.taken_lines += said.lines.size();
    log.taken_bytes = end;
    bytes_max -= std::min(bytes_max, piece.size());
  }
  return all;
}

std::string LogBook::close(const std::string& module, std::uint32_t attempt) {
  const std::lock_guard lock(mutex_);
  const auto found = logs_.find({module, attempt});
  if (found == logs_.end()) return {};
  Log log = std::move(found->second);
  logs_.erase(found);
  if (log.left_out > 0) log.text += "[… " + std::to_string(log.left_out) + " lines left out …]\n";
  return std::move(log.text);
}

}  // namespace baton::pipeline
