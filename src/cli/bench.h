// `baton bench`: how fast a running coordinator is, over so many connections with so many requests under way
// on each.
#pragma once

#include <cstdint>

#include "cli/connection.h"

namespace baton::cli {

struct BenchOptions {
  Connection connection;
  std::uint64_t connections = 16;
  std::uint64_t depth = 64;
  std::uint64_t tasks = 100'000;
  std::uint64_t payload_bytes = 200;
  bool json = false;
};

int run_bench(const BenchOptions& options);

class CommandLine;
void add_bench_command(CommandLine& line);

}  // namespace baton::cli
