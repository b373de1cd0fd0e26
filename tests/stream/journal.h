// What instances note of what they have handled: a line of fixed length for each message, in a file for each
// process.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "stream/work.h"

namespace baton::stream {

struct Handled {
  StreamId stream;
  std::int64_t sequence = 0;
  Epoch epoch;
};

inline constexpr std::size_t kLineBytes = 36 + 1 + 20 + 1 + 20 + 1;

inline std::string line_of(const Handled& handled) {
  const auto padded = [](std::int64_t number) {
    const std::string digits = std::to_string(number);
    return std::string(20 - digits.size(), '0') + digits;
  };
  return to_text(handled.stream.value) + " " + padded(handled.sequence) + " " + padded(handled.epoch.value) +
         "\n";
}

// How many lines there are by now, without reading them.
inline std::size_t lines_in(const std::string& folder) {
  std::size_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) bytes += file.file_size();
  return bytes / kLineBytes;
}

// By stream, and within it by epoch, in the order in which they were handled.
using Journal = std::map<StreamId, std::map<Epoch, std::vector<std::int64_t>>>;
inline Journal read_journal(const std::string& folder) {
  Journal journal;
  for (const auto& path : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(path.path());
    std::string id;
    std::int64_t sequence = 0, epoch = 0;
    while (file >> id >> sequence >> epoch) {
      const auto stream = parse_uuid(id);
      BATON_CHECK(stream);
      journal[{*stream}][{epoch}].push_back(sequence);
    }
  }
  return journal;
}

}  // namespace baton::stream
