// baton log verify, dump, stat, backup, restore.
#pragma once

#include <cstdint>
#include <string>

namespace baton::cli {

struct LogOptions {
  std::string directory;
  std::string target;
  bool json = false;
  bool full = false;
  std::uint64_t from = 1;
  std::uint64_t to = 0;
};

int log_verify(const LogOptions& options);
int log_dump(const LogOptions& options);
int log_stat(const LogOptions& options);
int log_backup(const LogOptions& options);
int log_restore(const LogOptions& options);

class CommandLine;
void add_log_commands(CommandLine& line);

}  // namespace baton::cli
