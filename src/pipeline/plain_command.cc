#include "pipeline/plain_command.h"

#include <algorithm>

namespace baton::pipeline {
namespace {

// What POSIX shells, dash and bash do themselves, and words that begin something; in order.
constexpr std::string_view kOfTheShell[] = {
    ".",       ":",       "[",      "[[",      "alias",   "bg",      "bind",     "break",   "builtin",
    "caller",  "case",    "cd",     "chdir",   "command", "declare", "dirs",     "disown",  "do",
    "done",    "echo",    "elif",   "else",    "enable",  "esac",    "eval",     "exec",    "exit",
    "export",  "false",   "fc",     "fg",      "fi",      "for",     "function", "getopts", "hash",
    "help",    "history", "if",     "in",      "jobs",    "kill",    "let",      "local",   "logout",
    "mapfile", "popd",    "printf", "pushd",   "pwd",     "read",    "readonly", "return",  "select",
    "set",     "shift",   "shopt",  "source",  "suspend", "test",    "then",     "time",    "times",
    "trap",    "true",    "type",   "typeset", "ulimit",  "umask",   "unalias",  "unset",   "until",
    "wait",    "while"};

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./:=@%+, ").find(c) != std::string_view::npos;
}

}  // namespace

std::vector<std::string> plain_command(std::string_view script) {
  while (script.ends_with('\n') || script.ends_with(' ')) script.remove_suffix(1);
  if (!std::ranges::all_of(script, is_plain)) return {};
  std::vector<std::string> words;
  while (!script.empty()) {
    const std::size_t end = std::min(script.find(' '), script.size());
    if (end > 0) words.emplace_back(script.substr(0, end));
    script.remove_prefix(std::min(end + 1, script.size()));
  }
  if (words.empty()) return {};
  const std::string& program = words.front();
  const bool is_of_the_shell = std::ranges::binary_search(kOfTheShell, std::string_view(program));
  if (is_of_the_shell || program.find('=') != std::string::npos) return {};
  return words;
}

}  // namespace baton::pipeline
