#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/output.h"

namespace baton::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 it could not be done and the message says why, 2 a task that was waited for\n"
    "failed, 3 it has not ended yet, 64 the command line makes no sense, 66 the input cannot be read,\n"
    "69 no coordinator could be reached, 75 no answer came, 77 not allowed.\n"
    "The `log` commands have others: baton log verify --help.";

// "-j,--jobs N": the names of an option, and what its value is called.
struct Named {
  explicit Named(std::string_view text)
      : names(text.substr(0, text.find(' '))), value(text.substr(std::min(names.size() + 1, text.size()))) {}
  std::string long_name() const { return names.substr(names.rfind(',') + 1); }  // npos + 1 is 0

  std::string names;
  std::string value;
};

constexpr const char* kRest = "--";  // in place of the name of a value: the words behind this

// Names, then what it is, then in brackets what holds if it is not given.
class Layout final : public CLI::Formatter {
 public:
  Layout() { column_width(30); }

  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 || option->get_type_name().empty() || is_rest(option)
               ? ""
               : " " + option->get_type_name();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string otherwise = option->get_default_str();
    if (!option->get_envname().empty())
      otherwise =
          fmt::format("${}{}{}", option->get_envname(), otherwise.empty() ? "" : ", else ", otherwise);
    if (otherwise.empty()) return option->get_description();
    return fmt::format("{} [{}]", option->get_description(), otherwise);
  }
  std::string make_option_usage(const CLI::Option* option) const override {
    return is_rest(option) ? "-- " + option->get_name() + "..." : CLI::Formatter::make_option_usage(option);
  }

 private:
  static bool is_rest(const CLI::Option* option) { return option->get_type_name() == kRest; }
};

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

Command& Command::added(CLI::Option* option, const std::string& value_name) {
  option->type_name(value_name);
  if (!entry_->heading.empty()) option->group(entry_->heading);
  entry_->last = option;
  return *this;
}

Command& Command::argument(const char* name, std::string& value, const char* description) {
  return added(entry_->app->add_option(name, value, description)->required());
}

Command& Command::optional_argument(const char* name, std::optional<std::string>& value,
                                    const char* description) {
  return added(entry_->app->add_option(name, value, description));
}

Command& Command::arguments(const char* name, std::vector<std::string>& values, const char* description) {
  return added(entry_->app->add_option(name, values, description)->required());
}

Command& Command::some_arguments(const char* name, std::vector<std::string>& values,
                                 const char* description) {
  return added(entry_->app->add_option(name, values, description));
}

Command& Command::choice_argument(const char* name, std::string& value, const std::vector<std::string>& among,
                                  const char* description) {
  choice(name, value, among, description);
  entry_->last->required();
  return *this;
}

Command& Command::rest(const char* name, std::vector<std::string>& words, const char* description) {
  entry_->rest = &words;
  return added(entry_->app->add_option(name, words, description), kRest);
}

Command& Command::option(const char* name, std::string& value, const char* description) {
  const Named named(name);
  return added(entry_->app->add_option(named.names, value, description)->capture_default_str(), named.value);
}

Command& Command::option(const std::string& name, std::optional<std::string>& value,
                         const std::string& description, const std::string& otherwise) {
  const Named named(name);
  return added(entry_->app->add_option(named.names, value, description)->default_str(otherwise), named.value);
}

Command& Command::options(const char* name, std::vector<std::string>& values, const char* description) {
  const Named named(name);
  auto* option = entry_->app->add_option(named.names, values, description);
  option->allow_extra_args(false)->delimiter(',')->default_str(fmt::format("{}", fmt::join(values, ",")));
  return added(option, named.value);
}

Command& Command::repeated(const char* name, std::vector<std::string>& values, const char* description) {
  const Named named(name);
  auto* option = entry_->app->add_option(named.names, values, description);
  return added(option->allow_extra_args(false), named.value);
}

Command& Command::assignments(const char* name, std::map<std::string, std::string>& values,
                              const char* description) {
  const Named named(name);
  const auto read = [=, &values](const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos || equals == 0)
        throw CLI::ValidationError(
            fmt::format("{} takes {}, and '{}' is not of that form", named.long_name(), named.value, word));
      values[word.substr(0, equals)] = word.substr(equals + 1);
    }
  };
  auto* option = entry_->app->add_option_function<std::vector<std::string>>(named.names, read, description);
  return added(option->allow_extra_args(false), named.value);
}

Command& Command::parsed(const char* name, const char* description, const std::string& otherwise,
                         std::function<Status(const std::string& text)> parse) {
  const Named named(name);
  const auto read = [=](const std::string& text) {
    if (const Status done = parse(text); !done)
      throw CLI::ValidationError(named.long_name() + ": " + done.error().message);
  };
  auto* option = entry_->app->add_option_function<std::string>(named.names, read, description);
  return added(option->default_str(otherwise), named.value);
}

Command& Command::flag(const char* name, bool& value, const char* description) {
  return added(entry_->app->add_flag(name, value, description));
}

Command& Command::environment(const std::string& variable) {
  entry_->last->envname(variable);
  return *this;
}

Command& Command::heading(const char* text) {
  entry_->heading = text;
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
    : words_(argv, argv + argc),
      app_(std::make_unique<CLI::App>("baton coordinates work on machines that may die at any moment.")) {
  app_->name("baton");
  app_->set_version_flag("--version", BATON_VERSION);
  app_->require_subcommand(1);
  app_->formatter(std::make_shared<Layout>());
}

CommandLine::~CommandLine() = default;

CLI::App* CommandLine::parent_of(const std::string& name, std::string& last_word) {
  CLI::App* parent = app_.get();
  std::size_t at = 0;
  for (std::size_t space; (space = name.find(' ', at)) != std::string::npos; at = space + 1)
    parent = parent->get_subcommand(name.substr(at, space - at));
  last_word = name.substr(at);
  return parent;
}

void CommandLine::group(const std::string& name, const char* description) {
  std::string last_word;
  CLI::App* parent = parent_of(name, last_word);
  parent->add_subcommand(last_word, description)->require_subcommand(1);
}

Command CommandLine::command(const std::string& name, const char* description) {
  std::string last_word;
  CLI::App* parent = parent_of(name, last_word);
  commands_.push_back(std::make_unique<Command::Entry>());
  Command::Entry& entry = *commands_.back();
  // A group may be a command too, for who says no more than its name.
  const auto same_name = [&](const CLI::App* app) { return app->get_name() == last_word; };
  const auto known = parent->get_subcommands(same_name);
  entry.app = known.empty() ? nullptr : known.front();
  if (entry.app == nullptr) {
    entry.app = parent->add_subcommand(last_word, description);
  } else {
    entry.app->description(description);
    entry.app->require_subcommand(0, 1);
  }
  return Command(entry);
}

CommandDescription CommandLine::describe() const { return describe(app_.get()); }

CommandDescription CommandLine::describe(const CLI::App* app) const {
  const Layout layout;
  CommandDescription made{.path = path_of(app), .about = app->get_description(), .footer = app->get_footer()};
  for (std::size_t at = 0; (at = made.footer.find(program(), at)) != std::string::npos; at += 5)
    made.footer.replace(at, program().size(), "baton");
  for (const CLI::Option* option : app->get_options()) {
    OptionDescription one{.about = layout.make_option_desc(option), .heading = option->get_group()};
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    if (const std::string value = layout.make_option_opts(option); !value.empty())
      one.value = value.substr(1);
    for (const auto& command : commands_) {
      if (const auto among = command->choices.find(option); among != command->choices.end())
        one.choices = among->second;
    }
    if (option->get_positional()) one.usage = layout.make_option_usage(option);
    (option->get_positional() ? made.arguments : made.options).push_back(std::move(one));
  }
  for (const auto& command : commands_) made.runs |= command->app == app;
  for (const CLI::App* sub : app->get_subcommands({})) made.commands.push_back(describe(sub));
  return made;
}

// The parser would take what is behind "--" for arguments like those before it.
void CommandLine::cut_off_rest() {
  const auto dashes = std::ranges::find(words_, kRest);
  if (dashes == words_.end() || words_.size() < 2) return;
  for (const auto& command : commands_) {
    if (command->rest == nullptr || command->app->get_name() != words_[1]) continue;
    command->rest->assign(dashes + 1, words_.end());
    words_.erase(dashes, words_.end());
    return;
  }
}

bool CommandLine::has(std::string_view option) const {
  return std::ranges::any_of(words_, [&](std::string_view word) {
    return word.starts_with(option) && (word.size() == option.size() || word[option.size()] == '=');
  });
}

bool CommandLine::knows_variable(const std::string& name) const {
  return std::ranges::any_of(commands_, [&](const auto& command) {
    const auto from_it = [&](const CLI::Option* option) { return option->get_envname() == name; };
    return std::ranges::any_of(command->app->get_options(), from_it);
  });
}

bool CommandLine::is_of_a_command_in(const std::string& group, const std::string& option) const {
  return std::ranges::any_of(commands_, [&](const auto& command) {
    return path_of(command->app).starts_with(group + " ") &&
           command->app->get_option_no_throw(option) != nullptr;
  });
}

// "help log verify" is "log verify --help"; where there is no such command, that is what is to be said.
void CommandLine::turn_help_around() {
  if (words_.size() < 2 || words_[1] != "help") return;
  words_.erase(words_.begin() + 1);
  const CLI::App* app = app_.get();
  for (std::size_t at = 1; at < words_.size() && is_group(app); ++at) {
    const auto is_meant = [&](const CLI::App* one) { return one->get_name() == words_[at]; };
    const auto found = app->get_subcommands(is_meant);
    if (found.empty()) return;
    app = found.front();
  }
  words_.emplace_back("--help");
}

int CommandLine::run() {
  app_->footer(kExitCodes);
  cut_off_rest();
  turn_help_around();
  try {
    app_->parse(std::vector<std::string>(words_.rbegin(), words_.rend() - 1));  // it wants the last one first
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
    if (!command->app->parsed()) continue;
    if (command->rest != nullptr && command->rest->empty())
      return complain("what to run is missing behind --");
    const int exit_code = command->run();
    // It has said what makes no sense, and does not know its own name.
    if (exit_code == kExitUsage) to_errors("{} --help tells how it is used\n", path_of(command->app));
    return exit_code;
  }
  return complain("a command is missing");
}

// Commands of that name which are in a group.
std::string CommandLine::elsewhere(const std::string& word) const {
  std::vector<std::string> paths;
  for (const auto& command : commands_) {
    if (command->app->get_name() == word) paths.push_back("'" + path_of(command->app) + "'");
  }
  return paths.empty() ? "" : fmt::format(" (did you mean {}?)", fmt::join(paths, " or "));
}

int CommandLine::complain(const std::string& what) {
  const CLI::App* app = first_confused(app_.get());
  const std::string path = path_of(app);
  const std::vector<std::string> rest = app->remaining();
  const std::string word = rest.empty() ? "" : rest.front();
  std::string said;
  const std::string option = word.substr(0, word.find('='));
  if (option.starts_with('-') && is_group(app) && is_of_a_command_in(path, option)) {
    said = fmt::format("the option '{}' stands behind the command it is for: {} COMMAND {}", option, path,
                       option);
  } else if (!word.empty() && word.starts_with('-')) {
    said = fmt::format("there is no option '{}'; {} --help lists them", word, path);
  } else if (!word.empty() && is_group(app)) {
    said = fmt::format("there is no command '{}'{}; {} --help lists them", word, elsewhere(word), path);
  } else if (!word.empty()) {
    said = fmt::format("'{}' is one argument too many; {} --help tells how it is used", word, path);
  } else if (is_group(app)) {
    said = fmt::format("a command is missing; {} --help lists them", path);
  } else {
    said = fmt::format("{}; {} --help tells how it is used", what, path);
  }
  to_errors("baton: {}\n", said);
  return kExitUsage;
}

}  // namespace baton::cli
