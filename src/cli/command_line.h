// The command line: commands, each with its arguments and what it does, and what is said when they do not
// fit.
//
//   Command verify = line.command("log verify", "Checks every byte and replays every entry");
//   verify.argument("directory", options->directory, "Data directory");
//   verify.option("--from LSN", options->from, "First entry to print");
//   verify.run([options] { return log_verify(*options); });
//
// A family of commands adds itself from its own file (add_log_commands and the like); main() lists the
// families. The values live as long as the closure given to run(). The option parser is known to
// command_line.cc alone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/command_description.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
class Option;
}  // namespace CLI

namespace baton::cli {

inline constexpr int kExitUsage = 64;  // EX_USAGE: the command line makes no sense; nothing was done

// One command. A handle: it is copied freely and good as long as the CommandLine is.
class Command {
 public:
  Command& argument(const char* name, std::string& value, const char* description);  // has to be given
  Command& optional_argument(const char* name, std::optional<std::string>& value, const char* description);
  Command& arguments(const char* name, std::vector<std::string>& values,
                     const char* description);  // 1 or more
  Command& some_arguments(const char* name, std::vector<std::string>& values,
                          const char* description);  // any number
  Command& choice_argument(const char* name, std::string& value, const std::vector<std::string>& among,
                           const char* description);
  Command& rest(const char* name, std::vector<std::string>& words, const char* description);  // behind "--"

  // An option is named as in the help: "--data DIR", "-j,--jobs N".
  Command& option(const char* name, std::string& value, const char* description);
  Command& option(const std::string& name, std::optional<std::string>& value, const std::string& description,
                  const std::string& otherwise);
  // Any number of them; `options` are also taken apart at commas.
  Command& repeated(const char* name, std::vector<std::string>& values, const char* description);
  Command& options(const char* name, std::vector<std::string>& values, const char* description);
  Command& assignments(const char* name, std::map<std::string, std::string>& values,
                       const char* description);  // NAME=VALUE; the last one of a name counts
  Command& choice(const char* name, std::string& value, const std::vector<std::string>& among,
                  const char* description);
  Command& number(const char* name, std::uint64_t& value, const char* description, std::uint64_t min = 0,
                  std::uint64_t max = UINT64_MAX);
  Command& number(const char* name, std::uint32_t& value, const char* description,
                  std::uint32_t max = UINT32_MAX);
  Command& number(const char* name, std::optional<std::uint32_t>& value, const char* description,
                  std::uint32_t max = UINT32_MAX);
  Command& duration(const char* name, Duration& value, const char* description);  // 250ms, 30s, 5m, 1h30m, 2d
  Command& duration(const char* name, std::optional<Duration>& value, const char* description);
  Command& flag(const char* name, bool& value, const char* description);

  Command& environment(const std::string& variable);  // where the last option comes from if it is not given
  Command& heading(const char* text);                 // the options from here on stand under it in the help
  Command& footer(const std::string& text);  // examples, exit codes: what stands at the end of its help
  Command& run(std::function<int()> what);

 private:
  friend class CommandLine;
  struct Entry {
    CLI::App* app = nullptr;
    CLI::Option* last = nullptr;
    std::string heading;
    std::vector<std::string>* rest = nullptr;
    std::map<const CLI::Option*, std::vector<std::string>> choices;
    std::function<int()> run;
  };
  explicit Command(Entry& entry) : entry_(&entry) {}
  // An option whose value `parse` reads.
  Command& parsed(const char* name, const char* description, const std::string& otherwise,
                  std::function<Status(const std::string& text)> parse);
  Command& added(CLI::Option* option, const std::string& value_name = {});
  Entry* entry_;
};

class CommandLine {
 public:
  CommandLine(int argc, char** argv);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Words under which there are commands: group("log", …), then command("log verify", …).
  void group(const std::string& name, const char* description);
  Command command(const std::string& name, const char* description);
  // As the user called it, for examples that can be copied.
  std::string program() const { return words_.front(); }
  // Whether the command line itself has an option ("--connect"), and not only the environment.
  bool has(std::string_view option) const;
  // Whether an option of some command can come from this variable of the environment.
  bool knows_variable(const std::string& name) const;

  // All commands added so far, as if the program had been called "baton".
  CommandDescription describe() const;
  // Reads the arguments and runs the command they name. Returns the exit code.
  int run();

 private:
  CommandDescription describe(const CLI::App* app) const;
  CLI::App* parent_of(const std::string& name, std::string& last_word);
  void cut_off_rest();
  void turn_help_around();
  bool is_of_a_command_in(const std::string& group, const std::string& option) const;
  std::string elsewhere(const std::string& word) const;
  int complain(const std::string& what);

  std::vector<std::string> words_;  // of the command line, the program's name first
  std::unique_ptr<CLI::App> app_;
  std::vector<std::unique_ptr<Command::Entry>> commands_;
};

}  // namespace baton::cli
