#include "cli/token.h"

#include <fmt/format.h>

#include <memory>

#include "cli/command_line.h"
#include "cli/json_object.h"
#include "cli/output.h"
#include "core/names.h"
#include "server/access.h"

namespace baton::cli {

int run_token(const TokenOptions& options) {
  // Of a line in the file only what is before a # counts.
  if (!core::is_name(options.name) || options.name.find('#') != std::string::npos) {
    to_errors("baton: '{}' is no name: 1 to 128 graphic ASCII characters, and no #\n", options.name);
    return kExitUsage;
  }
  const server::NewToken made = server::make_token();
  const std::string line = fmt::format("{} {} {}", options.name, made.hash, options.allowed);
  if (auto read = server::Access::read(line); !read) {
    const std::string& message = read.error().message;  // "line 1: what is wrong", where no file was read
    to_errors("baton: --allow: {}\n", message.substr(message.find(": ") + 2));
    return kExitUsage;
  }
  if (options.json) {
    fmt::print("{}\n",
               JsonObject().text("name", options.name).text("token", made.token).text("line", line).whole());
    return 0;
  }
  fmt::print("{}\n", line);
  to_errors("baton: that line is for the file of --tokens. The token, which is shown only now:\n{}\n",
            made.token);
  return 0;
}

void add_token_command(CommandLine& line) {
  // The closure that runs the command shares the options with the parser that fills them.
  auto options = std::make_shared<TokenOptions>();
  line.command("token", "Makes a token, and the line about it for the file of `baton serve --tokens`")
      .argument("name", options->name, "Whose it is")
      .option("--allow TEXT", options->allowed,
              "NAMESPACE=submit,work,query,admin or NAMESPACE=all, several in quotes; * is every one")
      .flag("--json", options->json, "Output for programs")
      .footer("Example: " + line.program() + " token ci --allow 'default=submit,query' >> tokens")
      .run([options] { return run_token(*options); });
}

}  // namespace baton::cli
