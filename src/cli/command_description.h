// The commands as data: what shell completion and the man page are made from.
#pragma once

#include <string>
#include <vector>

namespace baton::cli {

struct OptionDescription {
  std::vector<std::string> names;  // "-j", "--jobs"; none for an argument
  std::string value;               // what its value is called; empty for a flag
  std::string about;
  std::vector<std::string> choices;  // its values, if they are known
  std::string heading;               // under which it stands in the help
  std::string usage;                 // of an argument: [payload]
};

struct CommandDescription {
  std::string path;  // "baton task get"
  std::string about;
  std::string footer;
  std::vector<OptionDescription> options;
  std::vector<OptionDescription> arguments;
  std::vector<CommandDescription> commands;
  bool runs = false;  // it does something without one of those

  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

// Every command of the tree, each before those under it.
template <class Visit>
void for_each_command(const CommandDescription& command, const Visit& visit) {
  visit(command);
  for (const CommandDescription& one : command.commands) for_each_command(one, visit);
}

}  // namespace baton::cli
