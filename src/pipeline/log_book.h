// What modules of a worker say, until their results are published: all of it for the result, and the newest
// of it for whoever wants to watch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/coordinator.h"
#include "pipeline/site.h"

namespace baton::pipeline {

// May be used from several threads.
class LogBook {
 public:
  static constexpr std::size_t kBytesMax = std::size_t{64} << 20;  // of a module; what comes then is left out

  void add(const LogLine& line);
  // What was not taken before, in order, up to so many bytes.
  std::vector<Said> take(std::size_t bytes_max);
  // All that it said, a line after the other. It is forgotten then.
  std::string close(const std::string& module, std::uint32_t attempt);

 private:
  struct Log {
    std::string text;
    std::uint64_t left_out = 0;   // lines
    std::size_t taken_bytes = 0;  // of the text
    std::uint64_t taken_lines = 0;
  };

  std::mutex mutex_;
  // By module and attempt: a worker that was stopped for a while may have two of one module.
  std::map<std::pair<std::string, std::uint32_t>, Log> logs_;
};

// Each line of a text, from the given one on.
std::vector<std::string> lines_of(std::string_view text, std::uint64_t first = 0);

}  // namespace baton::pipeline
