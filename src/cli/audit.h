// `baton audit FILE`: whether the file of administrative actions is what the server wrote.
#pragma once

#include <string>

namespace baton::cli {

class CommandLine;

struct AuditOptions {
  std::string file;
  bool json = false;
};

int run_audit(const AuditOptions& options);
void add_audit_command(CommandLine& line);

}  // namespace baton::cli
