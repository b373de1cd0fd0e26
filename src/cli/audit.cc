#include "cli/audit.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "cli/command_line.h"
#include "cli/complaint.h"
#include "cli/json_object.h"
#include "cli/quantities.h"
#include "server/audit.h"

namespace baton::cli {
namespace {

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file.is_open()) text << file.rdbuf();
  if (file.is_open() && !text.bad()) return text.str();
  return failure(Errc::not_found, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
}

std::string text_of(const server::AuditedLines& lines) {
  if (lines.count == 0) return "is empty: nothing was written down yet, or all of it was taken out";
  std::string text = counted(lines.count, "line") + ", each follows from the one before";
  if (lines.first > 1)
    text += fmt::format("; the first is number {}, what was before it is not in this file", lines.first);
  return text;
}

}  // namespace

int run_audit(const AuditOptions& options) {
  const auto text = read_file(options.file);
  if (!text) return complain(text.error(), format_of(options.json));
  const auto lines = server::check_audit(*text);
  if (!lines)
    return complain({lines.error().code, options.file + ": " + lines.error().message},
                    format_of(options.json));
  if (options.json) {
    fmt::print("{}\n", JsonObject()
                           .text("file", options.file)
                           .number("lines", lines->count)
                           .number("first", lines->first)
                           .whole());
  } else {
    fmt::print("{}: {}\n", options.file, text_of(*lines));
  }
  return 0;
}

void add_audit_command(CommandLine& line) {
  auto options = std::make_shared<AuditOptions>();
  line.command("audit", "Checks that no line of an audit file was changed, added or taken out")
      .argument("file", options->file, "File of `baton serve --audit`, or one that was rotated")
      .flag("--json", options->json, "Output for programs")
      .footer(
          "Lines taken from the end do not show: compare the last one with a copy kept elsewhere.\n"
          "Example: " +
          line.program() + " audit audit.log")
      .run([options] { return run_audit(*options); });
}

}  // namespace baton::cli
