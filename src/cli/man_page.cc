#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "cli/command_line.h"
#include "cli/completion.h"
#include "cli/connection.h"

namespace baton::cli {
namespace {

// As roff takes it literally: what begins with a dot is a request, a plain minus sign is a hyphen.
std::string literal(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    const bool begins_line = at == 0 || text[at - 1] == '\n';
    if (begins_line && (letter == '.' || letter == '\'')) out += "\\&";
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else if (letter == '`') {
      out += "\\`";
    } else {
      out += letter;
    }
  }
  return out;
}

std::string names_of(const OptionDescription& option) {
  std::string text;
  for (const std::string& name : option.names)
    text += fmt::format("{}\\fB{}\\fR", text.empty() ? "" : ", ", literal(name));
  if (!option.value.empty()) text += fmt::format(" \\fI{}\\fR", literal(option.value));
  return text;
}

std::string usage_of(const CommandDescription& command) {
  std::string text = "\\fB" + literal(command.path) + "\\fR";
  if (!command.options.empty()) text += " [\\fIoptions\\fR]";
  for (const OptionDescription& argument : command.arguments) text += " " + literal(argument.usage);
  return text;
}

bool is_help(const OptionDescription& option) { return option.names.back() == "--help"; }
// Those that every command has which talks to a coordinator are told once.
bool is_common(const OptionDescription& option) { return option.heading == kConnectionHeading; }

std::string option_text(const OptionDescription& option) {
  return fmt::format(".TP\n{}\n{}\n", names_of(option), literal(option.about));
}

// The text of a footer: lines as they are, for they were broken by hand.
std::string footer_text(const std::string& footer) {
  return footer.empty() ? "" : fmt::format(".PP\n.nf\n{}\n.fi\n", literal(footer));
}

}  // namespace

std::string man_page(const CommandDescription& baton) {
  std::string commands, common;
  for_each_command(baton, [&](const CommandDescription& command) {
    if (!command.runs) return;
    commands += fmt::format(".SS {}\n{}\n.PP\n{}.\n", literal(command.path.substr(6)), usage_of(command),
                            literal(command.about));
    for (const OptionDescription& argument : command.arguments)
      commands += fmt::format(".TP\n\\fI{}\\fR\n{}\n", literal(argument.usage), literal(argument.about));
    for (const OptionDescription& option : command.options) {
      if (!is_help(option) && !is_common(option)) commands += option_text(option);
    }
    commands += footer_text(command.footer);
    if (command.name() != "submit") return;
    for (const OptionDescription& option : command.options) {
      if (is_common(option)) common += option_text(option);
    }
  });
  return fmt::format(
      ".TH BATON 1 \"\" \"baton {}\" \"User Commands\"\n"
      ".SH NAME\nbaton \\- coordinates work on machines that may die at any moment\n"
      ".SH SYNOPSIS\n\\fBbaton\\fR \\fIcommand\\fR [\\fIoptions\\fR] [\\fIarguments\\fR]\n"
      ".SH DESCRIPTION\nTasks are submitted; workers take them under a lease for a limited time; a worker "
      "that dies loses its\n"
      "lease and somebody else gets the task; no task is ever completed twice.\n"
      ".PP\nTimes are written 250ms, 30s, 5m, 1h30m or 2d.\n"
      ".SH COMMANDS\n{}"
      ".SH CONNECTION\nEvery command that talks to a coordinator has these options as well:\n{}"
      ".SH EXIT STATUS\n.nf\n{}\n.fi\n"
      ".SH ENVIRONMENT\nWhere an option can come from a variable, the brackets behind it say so. "
      "\\fBBATON_TOKEN\\fR is the token.\n",
      BATON_VERSION, commands, common, literal(baton.footer));
}

void add_document_commands(CommandLine& line) {
  auto shell = std::make_shared<std::string>();
  line.command("completion", "Prints what a shell needs to complete command lines")
      .choice_argument("shell", *shell, {"bash", "zsh", "fish"}, "bash, zsh or fish")
      .footer("Example: source <(" + line.program() + " completion bash)")
      .run([&line, shell] {
        const CommandDescription baton = line.describe();
        fmt::print("{}", *shell == "bash"  ? bash_completion(baton)
                         : *shell == "zsh" ? zsh_completion(baton)
                                           : fish_completion(baton));
        return 0;
      });
  line.command("man", "Prints the man page")
      .footer("Example: " + line.program() + " man | man -l -")
      .run([&line] {
        fmt::print("{}", man_page(line.describe()));
        return 0;
      });
}

}  // namespace baton::cli
