// Lines from a file or from standard input, as they come.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/result.h"

namespace baton::cli {

class LineReader {
 public:
  static constexpr std::size_t kLineBytesMax = std::size_t{4} << 20;  // all that a line of JSON may say

  static Result<int> open(const std::string& path);  // "-" is standard input
  explicit LineReader(int descriptor);               // closes it, if it is not standard input
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Without its end; none at the end of the input. After an error there is nothing more.
  std::optional<Result<std::string>> next();
  bool would_wait() const;  // the next line is not here yet
  std::size_t bytes_read() const { return bytes_read_; }
  std::size_t bytes_total() const { return bytes_total_; }  // 0 if it is not known

 private:
  Status fill();

  const int descriptor_;
  std::string buffer_;
  std::size_t begin_ = 0;
  bool ended_ = false;
  std::size_t bytes_read_ = 0;
  std::size_t bytes_total_ = 0;
};

// All of a file, or of standard input, if it is not larger than a payload may be.
Result<std::string> read_whole(const std::string& path);

}  // namespace baton::cli
