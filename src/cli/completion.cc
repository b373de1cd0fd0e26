#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>

namespace baton::cli {
namespace {

bool is_file(const OptionDescription& option) { return option.value == "FILE" || option.value == "DIR"; }

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

// In single quotes, for any of the three.
std::string quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

// What may stand behind a command: the commands under it, and its options.
std::string words_behind(const CommandDescription& command) {
  std::string words;
  for (const CommandDescription& one : command.commands) words += one.name() + " ";
  for (const OptionDescription& option : command.options) {
    for (const std::string& name : option.names) words += name + " ";
  }
  for (const OptionDescription& argument : command.arguments) {
    for (const std::string& choice : argument.choices) words += choice + " ";
  }
  if (!words.empty()) words.pop_back();
  return words;
}

}  // namespace

std::string bash_completion(const CommandDescription& baton) {
  std::string paths, values, words, any_value;
  const auto add = [](std::string& patterns, const std::string& pattern) {
    patterns += (patterns.empty() ? "" : "|") + quoted(pattern);
  };
  for_each_command(baton, [&](const CommandDescription& command) {
    for (const CommandDescription& one : command.commands) add(paths, one.path);
    words += fmt::format("    {}) words={} ;;\n", quoted(command.path), quoted(words_behind(command)));
    for (const OptionDescription& option : command.options) {
      for (const std::string& name : option.names) {
        const std::string pattern = command.path + " " + name;
        if (!option.choices.empty()) {
          values += fmt::format("    {}) COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return ;;\n",
                                quoted(pattern), fmt::join(option.choices, " "));
        } else if (!option.value.empty()) {
          add(any_value, pattern);
        }
      }
    }
  });
  return fmt::format(R"(# bash completion for baton; put it into ~/.bashrc:  source <(baton completion bash)
_baton() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command=baton words= word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    [[ $word == -- ]] && return  # what follows is somebody else's
    case "$command $word" in
      {}) command="$command $word" ;;
    esac
  done
  case "$command $prev" in
{}    {}) return ;;  # names of files, for want of anything better
  esac
  case "$command" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _baton baton
)",
                     paths, values, any_value, words);
}

namespace {

// Brackets and colons mean something in a specification of zsh's _arguments.
std::string zsh_text(const std::string& text) {
  return replaced(replaced(replaced(text, "[", "\\["), "]", "\\]"), ":", "\\:");
}

std::string zsh_option(const OptionDescription& option) {
  std::string specs;
  for (const std::string& name : option.names) {
    std::string spec = name + "[" + zsh_text(option.about) + "]";
    if (!option.value.empty()) {
      spec += ":" + zsh_text(option.value) + ":";
      if (is_file(option)) spec += "_files";
      if (!option.choices.empty()) spec += fmt::format("({})", fmt::join(option.choices, " "));
    }
    specs += " \\\n        " + quoted(spec);
  }
  return specs;
}

}  // namespace

std::string zsh_completion(const CommandDescription& baton) {
  std::string cases;
  for_each_command(baton, [&](const CommandDescription& command) {
    cases += fmt::format("    {})\n", quoted(command.path));
    if (!command.commands.empty()) {
      cases += "      commands=(";
      for (const CommandDescription& one : command.commands)
        cases += "\n        " + quoted(replaced(one.name(), ":", "\\:") + ":" + one.about);
      cases += ")\n      _describe command commands\n";
    }
    if (!command.runs) {
      cases += "      ;;\n";
      return;
    }
    cases += "      _arguments";
    for (const OptionDescription& option : command.options) cases += zsh_option(option);
    std::string choices = "_files";
    for (const OptionDescription& argument : command.arguments) {
      if (!argument.choices.empty()) choices = fmt::format("({})", fmt::join(argument.choices, " "));
    }
    cases += fmt::format(" \\\n        '*:argument:{}' ;;\n", choices);
  });
  std::string paths;
  for_each_command(baton, [&](const CommandDescription& command) {
    for (const CommandDescription& one : command.commands)
      paths += fmt::format("{}{}", paths.empty() ? "" : "|", quoted(one.path));
  });
  return fmt::format(R"(#compdef baton
# zsh completion for baton; put it into a folder of $fpath as _baton
_baton() {{
  local command=baton word
  local -a commands
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    [[ $word == -- ]] && return
    case "$command $word" in
      ({}) command="$command $word" ;;
    esac
  done
  case "$command" in
{}  esac
}}
_baton "$@"
)",
                     paths, cases);
}

std::string fish_completion(const CommandDescription& baton) {
  std::string text =
      "# fish completion for baton; put it into ~/.config/fish/completions/baton.fish\ncomplete -c baton "
      "-f\n";
  for_each_command(baton, [&](const CommandDescription& command) {
    // Behind all words of its path, and before any of the commands under it.
    std::string condition;
    const std::string path = command.path.substr(std::min(command.path.find(' '), command.path.size()));
    for (std::size_t at = 0; at < path.size();) {
      const std::size_t end = std::min(path.find(' ', at + 1), path.size());
      condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ",
                               path.substr(at + 1, end - at - 1));
      at = end;
    }
    std::string before = condition;
    if (!command.commands.empty()) {
      before += before.empty() ? "" : "; and ";
      before += "not __fish_seen_subcommand_from";
      for (const CommandDescription& one : command.commands) before += " " + one.name();
    }
    for (const CommandDescription& one : command.commands)
      text +=
          fmt::format("complete -c baton -n {} -a {} -d {}\n", quoted(before), one.name(), quoted(one.about));
    for (const OptionDescription& argument : command.arguments) {
      if (!argument.choices.empty())
        text += fmt::format("complete -c baton -n {} -a {}\n", quoted(before),
                            quoted(fmt::format("{}", fmt::join(argument.choices, " "))));
      if (argument.usage == "directory" || argument.usage == "target")
        text += fmt::format("complete -c baton -n {} -F\n", quoted(before));
    }
    for (const OptionDescription& option : command.options) {
      text += "complete -c baton" + (before.empty() ? "" : " -n " + quoted(before));
      for (const std::string& name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.value.empty()) text += is_file(option) ? " -r -F" : " -x";
      if (!option.choices.empty()) text += " -a " + quoted(fmt::format("{}", fmt::join(option.choices, " ")));
      text += " -d " + quoted(option.about) + "\n";
    }
  });
  return text;
}

}  // namespace baton::cli
