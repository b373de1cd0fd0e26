// The README's commands work as they are printed there.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/cli/said.h"
#include "tests/temporary_directory.h"

namespace baton::cli {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(std::string(BATON_SOURCE_DIR "/") + path);
  EXPECT_TRUE(file) << path;
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

// The lines of the plain code blocks in a section, which are shell commands.
std::vector<std::string> commands_in(const std::string& page, const std::string& section) {
  std::istringstream lines(page);
  std::vector<std::string> commands;
  bool in_section = false, in_block = false, is_plain = false;
  for (std::string line; std::getline(lines, line);) {
    if (!in_block && line.starts_with("## ")) in_section = line == "## " + section;
    if (line.starts_with("```")) {
      in_block = !in_block;
      is_plain = in_block && line == "```";
    } else if (in_section && is_plain && !line.empty()) {
      commands.push_back(line);
    }
  }
  return commands;
}

// A place that looks like a built checkout. `./dev` is its own, for the real one would build; what it does in
// the end is what the real one does.
void prepare_checkout(const std::string& place) {
  std::filesystem::create_directories(place + "/build/release");
  std::filesystem::create_symlink(BATON_PROGRAM, place + "/build/release/baton");
  std::filesystem::create_symlink(BATON_EXAMPLE, place + "/build/release/example_embedded");
  std::ofstream(place + "/dev") << "#!/bin/bash\n"
                                   "case $1 in\n"
                                   "  run) exec build/release/baton demo --data data \"${@:2}\" ;;\n"
                                   "  build) [[ -x build/$2 || -d build/$2 ]] ;;\n"
                                   "  *) exit 1 ;;\n"
                                   "esac\n";
  std::filesystem::permissions(place + "/dev", std::filesystem::perms::owner_all);
}

TEST(Readme, HasATourWhoseCommandsAllWork) {
  const std::vector<std::string> commands = commands_in(content_of("README.md"), "Five minutes");
  EXPECT_GE(commands.size(), 7u);
  const TemporaryDirectory place;
  prepare_checkout(place.path());
  for (const std::string& command : commands) {
    const Said said =
        run_program({"/bin/bash", "-o", "pipefail", "-c", "cd \"$0\" && " + command, place.path()});
    EXPECT_EQ(said.exit_code, 0) << command << "\n" << said.output << said.errors;
    EXPECT_TRUE(!said.output.empty() || command.starts_with("./dev build")) << command;
  }
}

TEST(Pages, NameOnlyCommandsThatDevHas) {
  const std::string help = run_program({"/bin/bash", BATON_SOURCE_DIR "/dev", "--help"}).output;
  const std::regex call(R"(\./dev ([a-z]+))");
  std::size_t calls = 0;
  for (const char* page : {"README.md", "docs/testing.md"}) {
    const std::string text = content_of(page);
    for (std::sregex_iterator at(text.begin(), text.end(), call), end; at != end; ++at, ++calls) {
      EXPECT_NE(help.find("\n  " + (*at)[1].str() + " "), std::string::npos) << page << ": " << at->str();
    }
  }
  EXPECT_GT(calls, 5u);
}

}  // namespace
}  // namespace baton::cli
