// The README's commands work as they are printed there.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "tests/cli/said.h"
#include "tests/crash/child.h"
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

// The plain code blocks in a section, which are shell commands to be pasted.
std::vector<std::string> scripts_in(const std::string& page, const std::string& section) {
  std::istringstream lines(page);
  std::vector<std::string> scripts;
  bool in_section = false, in_block = false, is_plain = false;
  for (std::string line; std::getline(lines, line);) {
    if (!in_block && line.starts_with("## ")) in_section = line == "## " + section;
    if (line.starts_with("```")) {
      in_block = !in_block;
      is_plain = in_block && line == "```";
      if (in_section && is_plain) scripts.emplace_back();
    } else if (in_section && is_plain) {
      scripts.back() += line + "\n";
    }
  }
  return scripts;
}

// A place that looks like a built checkout, with an empty `./dev`, for the real one would build.
void prepare_checkout(const std::string& place) {
  std::filesystem::create_directories(place + "/build/release");
  std::filesystem::create_symlink(BATON_PROGRAM, place + "/build/release/baton");
  std::filesystem::create_symlink(BATON_EXAMPLE, place + "/build/release/example_embedded");
  std::ofstream(place + "/dev") << "#!/bin/bash\n";
  std::filesystem::permissions(place + "/dev", std::filesystem::perms::owner_all);
}

// What `./dev run` ends in, but on ports that are free.
class RunningServer {
 public:
  explicit RunningServer(const std::string& place)
      : child_({.command = {BATON_PROGRAM, "serve", "--data", place + "/data", "--listen", "127.0.0.1:0",
                            "--http", "127.0.0.1:0"}}) {
    const std::regex ports(R"(RESP on 127\.0\.0\.1:(\d+) and HTTP on 127\.0\.0\.1:(\d+))");
    child_.listen(crash::after_ms(30'000), [&](const std::string& line) {
      std::smatch found;
      if (!std::regex_search(line, found, ports)) return true;
      port_ = found[1];
      http_port_ = found[2];
      return false;
    });
  }
  std::string with_ports(const std::string& script) const {
    return std::regex_replace(std::regex_replace(script, std::regex("7077"), port_), std::regex("7078"),
                              http_port_);
  }

 private:
  crash::Child child_;
  std::string port_;
  std::string http_port_;
};

TEST(Readme, HasATourWhoseCommandsAllWork) {  // X1
  const std::string page = content_of("README.md");
  const TemporaryDirectory place;
  prepare_checkout(place.path());
  const RunningServer server(place.path());
  std::string heard;
  for (const char* section : {"Five minutes", "In your own program"}) {
    for (const std::string& script : scripts_in(page, section)) {
      const Said said =
          run_program({"/bin/bash", "-o", "pipefail", "-ec",
                       "cd \"$0\"\n" + server.with_ports("export BATON_CONNECT=127.0.0.1:7077\n" + script),
                       place.path()});
      EXPECT_EQ(said.exit_code, 0) << script << "\n" << said.output << said.errors;
      EXPECT_FALSE(said.output.empty()) << script;
      heard += said.output;
    }
  }
  for (const char* expected : {"12321", "COMMITTED", "sent", "baton_tasks{", "intact", "TaskCompleted"})
    EXPECT_NE(heard.find(expected), std::string::npos) << expected << " in\n" << heard;
}

// What the page of the commands takes for granted: some files, a program to run, and somebody who adds.
void prepare_examples(const std::string& place) {
  std::filesystem::create_directories(place + "/bin");
  std::filesystem::create_symlink(BATON_PROGRAM, place + "/bin/baton");
  std::ofstream(place + "/bin/convert") << "#!/bin/sh\ncp \"$1\" \"$4\"\n";
  std::filesystem::permissions(place + "/bin/convert", std::filesystem::perms::owner_all);
  std::ofstream(place + "/cat.png") << "meow";
  std::ofstream(place + "/pictures.txt") << "cat.png\n";
  std::ofstream(place + "/letters.tsv") << "greet-bob\thello, bob\n";
  std::ofstream(place + "/tasks.ndjson")
      << R"({"queue": "mail", "payload": "hello", "key": "k1", "priority": 3})";
}

TEST(Pages, OfTheCommandsHaveExamplesThatWork) {  // X8
  const std::string page = content_of("docs/commands.md");
  const TemporaryDirectory place;
  prepare_examples(place.path());
  const RunningServer server(place.path());
  const std::string before = "cd \"$0\"; export PATH=$PWD/bin:$PATH BATON_CONNECT=127.0.0.1:7077\n";
  const std::string adder = "baton work add --once -- sh -c 'read a b; echo $((a + b))' &\n";
  std::size_t examples = 0;
  for (const char* section : {"Handing in tasks", "Many tasks at once", "A command for each task"}) {
    for (std::string script : scripts_in(page, section)) {
      const bool adds = script.find("submit add") != std::string::npos;
      script = std::regex_replace(script, std::regex(" -j 4 -- "),
                                  " -j 4 --drain -- ");  // it would go on for ever
      const Said said =
          run_program({"/bin/bash", "-o", "pipefail", "-ec",
                       server.with_ports(before + (adds ? adder : "") + script + "wait $(jobs -p) || true\n"),
                       place.path()});
      EXPECT_EQ(said.exit_code, 0) << script << said.output << said.errors;
      ++examples;
    }
  }
  EXPECT_EQ(examples, 4u);
  EXPECT_TRUE(std::filesystem::exists(place.path() + "/cat.png.small.png"));
}

// Every command there is, from what the shell is told to complete.
TEST(Pages, OfTheCommandsNameEveryCommandAndEverySetting) {  // X8
  const std::string page = content_of("docs/commands.md");
  const std::string script = run_program({BATON_PROGRAM, "completion", "bash"}).output;
  const std::regex command(R"( '(baton[ a-z]*)'\) words='([^']*)')");
  std::size_t commands = 0, settings = 0;
  for (std::sregex_iterator at(script.begin(), script.end(), command), end; at != end; ++at) {
    const std::string path = (*at)[1];
    const std::string words = (*at)[2];
    const bool is_group =
        words.find(' ') != std::string::npos && words.front() != '-' && path != "baton completion";
    if (is_group) continue;
    ++commands;
    const std::size_t last = path.rfind(' ');
    const bool named =
        page.find("`" + path) != std::string::npos ||
        page.find(path.substr(0, last) + " pause\\|" + path.substr(last + 1)) != std::string::npos;
    EXPECT_TRUE(named) << path;
    if (path != "baton serve") continue;
    std::istringstream options(words);
    for (std::string option; options >> option;) {
      if (!option.starts_with("--") || option == "--help" || option == "--config") continue;
      std::string name = option.substr(2);
      std::ranges::replace(name, '-', '_');
      EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
      ++settings;
    }
  }
  EXPECT_GT(commands, 20u);
  EXPECT_GT(settings, 12u);
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
