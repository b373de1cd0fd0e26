// The command line: commands, each with its arguments and what it does, and what is said when they do not
// fit.
//
//   Command verify = line.command("log verify", "Checks every byte and replays every entry");
//   verify.argument("directory", options->directory, "Data directory");
//   verify.run([options] { return log_verify(*options); });
//
// A family of commands adds itself from its own file (add_log_commands and the like); main() lists the
// families. The values live as long as the closure given to run(). The option parser is known to
// command_line.cc alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace baton::cli {

inline constexpr int kExitUsage = 64;  // EX_USAGE: the command line makes no sense; nothing was done

// One command. A handle: it is copied freely and good as long as the CommandLine is.
class Command {
 public:
  Command& argument(const char* name, std::string& value, const char* description);  // has to be given
  Command& option(const char* name, std::string& value, const char* description);
  Command& number(const char* name, std::uint64_t& value, const char* description, std::uint64_t min = 0,
                  std::uint64_t max = UINT64_MAX);
  Command& flag(const char* name, bool& value, const char* description);
  Command& footer(const std::string& text);  // examples, exit codes: what stands at the end of its help
  Command& run(std::function<int()> what);

 private:
  friend class CommandLine;
  struct Entry {
    CLI::App* app = nullptr;
    std::function<int()> run;
  };
  explicit Command(Entry& entry) : entry_(&entry) {}
  Entry* entry_;
};

class CommandLine {
 public:
  CommandLine(int argc, char** argv);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // A word under which there are commands: group("log", …), then command("log verify", …).
  void group(const char* name, const char* description);
  Command command(const std::string& name, const char* description);
  // As the user called it, for examples that can be copied.
  std::string program() const { return argv_[0]; }

  // Reads the arguments and runs the command they name. Returns the exit code.
  int run();

 private:
  CLI::App* parent_of(const std::string& name, std::string& last_word);
  int complain(const std::string& what);

  const int argc_;
  char** const argv_;
  std::unique_ptr<CLI::App> app_;
  std::vector<std::unique_ptr<Command::Entry>> commands_;
};

}  // namespace baton::cli
