// Where `baton stream` looks: a database, or a coordinator. Both answer in the same rows
// (cli/stream_report.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/stream_report.h"

namespace baton::cli {

class StreamSource {
 public:
  using Letters = std::vector<std::string>;  // their numbers; none: all

  virtual ~StreamSource() = default;

  virtual Result<Rows> lanes() = 0;
  virtual Result<Rows> instances(Duration stale) = 0;
  virtual Result<Rows> lag(std::uint64_t count) = 0;
  virtual Result<Rows> partitions(std::uint64_t count, Duration stale) = 0;
  virtual Result<Rows> why(const std::string& message, Duration stale) = 0;
  virtual Result<Rows> letters(const Letters& letters, std::span<const Field> fields) = 0;
  // How many it came to.
  virtual Result<std::uint64_t> replay(const Letters& letters) = 0;
  virtual Result<std::uint64_t> purge(const Letters& letters, Duration older_than) = 0;
};

}  // namespace baton::cli
