#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

namespace baton::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 it could not be done and the message says why, 64 the command line makes no "
    "sense.\n"
    "The `log` commands have more: baton log verify --help.";

std::uint64_t parse_number(const std::string& name, const std::string& text, std::uint64_t min,
                           std::uint64_t max) {
  const std::string_view digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) {
    throw CLI::ValidationError(fmt::format("{}: '{}' is not a number", name, text));
  }
  std::uint64_t number = 0;
  const std::errc error = std::from_chars(text.data(), text.data() + text.size(), number).ec;
  if (error != std::errc{} || number < min || number > max) {
    throw CLI::ValidationError(fmt::format("{}: {} is not from {} to {}", name, text, min, max));
  }
  return number;
}

// The words that lead to a command, as they were typed.
std::string path_of(const CLI::App* app) {
  return app->get_parent() == nullptr ? app->get_name() : path_of(app->get_parent()) + " " + app->get_name();
}

bool is_group(const CLI::App* app) { return app->get_require_subcommand_min() > 0; }

// Where the arguments stopped making sense: the first command on the way that could not use one of them.
const CLI::App* first_confused(const CLI::App* app) {
  while (app->remaining_size() == 0 && !app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

}  // namespace

Command& Command::argument(const char* name, std::string& value, const char* description) {
  entry_->app->add_option(name, value, description)->required()->type_name("");
  return *this;
}

Command& Command::option(const char* name, std::string& value, const char* description) {
  entry_->app->add_option(name, value, description)->capture_default_str();
  return *this;
}

Command& Command::number(const char* name, std::uint64_t& value, const char* description, std::uint64_t min,
                         std::uint64_t max) {
  const auto parse = [=, &value](const std::string& text) { value = parse_number(name, text, min, max); };
  entry_->app->add_option_function<std::string>(name, parse, description)
      ->type_name("NUMBER")
      ->default_str(std::to_string(value));
  return *this;
}

Command& Command::flag(const char* name, bool& value, const char* description) {
  entry_->app->add_flag(name, value, description);
  return *this;
}

Command& Command::footer(const std::string& text) {
  entry_->app->footer(text);
  return *this;
}

Command& Command::run(std::function<int()> what) {
  entry_->run = std::move(what);
  return *this;
}

CommandLine::CommandLine(int argc, char** argv)
    : argc_(argc),
      argv_(argv),
      app_(std::make_unique<CLI::App>("baton coordinates work on machines that may die at any moment.")) {
  app_->name("baton");
  app_->set_version_flag("--version", BATON_VERSION);
  app_->require_subcommand(1);
}

CommandLine::~CommandLine() = default;

CLI::App* CommandLine::parent_of(const std::string& name, std::string& last_word) {
  const std::size_t space = name.rfind(' ');
  last_word = space == std::string::npos ? name : name.substr(space + 1);
  return space == std::string::npos ? app_.get() : app_->get_subcommand(name.substr(0, space));
}

void CommandLine::group(const char* name, const char* description) {
  app_->add_subcommand(name, description)->require_subcommand(1);
}

Command CommandLine::command(const std::string& name, const char* description) {
  std::string last_word;
  CLI::App* parent = parent_of(name, last_word);
  commands_.push_back(std::make_unique<Command::Entry>());
  Command::Entry& entry = *commands_.back();
  entry.app = parent->add_subcommand(last_word, description);
  return Command(entry);
}

int CommandLine::run() {
  app_->footer(kExitCodes);
  try {
    app_->parse(argc_, argv_);
  } catch (const CLI::Success& asked) {
    return app_->exit(asked);  // for help, or for the version
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string_view what = error.what();
    return complain(
        fmt::format("{} {}", what.substr(0, what.find(':')),
                    what.find("missing") != what.npos ? "needs a value" : "may be given only once"));
  } catch (const CLI::ParseError& error) {
    return complain(error.what());
  }
  for (const auto& command : commands_) {
    if (command->app->parsed()) return command->run();
  }
  return complain("a command is missing");
}

int CommandLine::complain(const std::string& what) {
  const CLI::App* app = first_confused(app_.get());
  const std::string path = path_of(app);
  const std::vector<std::string> rest = app->remaining();
  const std::string word = rest.empty() ? "" : rest.front();
  std::string said;
  if (!word.empty() && word.starts_with('-')) {
    said = fmt::format("there is no option '{}'; {} --help lists them", word, path);
  } else if (!word.empty() && is_group(app)) {
    said = fmt::format("there is no command '{}'; {} --help lists them", word, path);
  } else if (!word.empty()) {
    said = fmt::format("'{}' is one argument too many; {} --help tells how it is used", word, path);
  } else if (is_group(app)) {
    said = fmt::format("a command is missing; {} --help lists them", path);
  } else {
    said = fmt::format("{}; {} --help tells how it is used", what, path);
  }
  fmt::print(stderr, "baton: {}\n", said);
  return kExitUsage;
}

}  // namespace baton::cli
