// What each command says, and with which exit code it ends. `baton log verify` has a test of its own, in
// tests/crash, and command lines that make no sense have one in tests/usage.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "tests/cli/said.h"
#include "tests/temporary_directory.h"

namespace baton::cli {
namespace {

constexpr int kUnreadable = 74;
constexpr int kDamaged = 2;

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

// A directory that the demo has filled, made once.
const std::string& demo_directory() {
  static const TemporaryDirectory temporary;
  static const std::string data = temporary.path() + "/data";
  static const Said said = baton({"demo", "--data", data, "--tasks", "4", "--workers", "2"});
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  return data;
}

TEST(Help, IsThereForEveryCommandWithAnExample) {  // X8
  // Every command there is, from what the shell is told to complete.
  const std::string script = baton({"completion", "bash"}).output;
  const std::regex command(R"( '(baton[ a-z]*)'\) words='([a-z]*))");
  std::size_t commands = 0;
  for (std::sregex_iterator at(script.begin(), script.end(), command), end; at != end; ++at, ++commands) {
    std::istringstream path((*at)[1].str() + " --help");
    const std::vector<std::string> words(std::next(std::istream_iterator<std::string>(path)), {});
    const Said said = baton(words);
    EXPECT_EQ(said.exit_code, 0) << said.errors;
    EXPECT_TRUE(contains(said.output, "Usage: ")) << said.output;
    const bool is_group = (*at)[2].length() > 0 && words[0] != "completion";
    EXPECT_TRUE(is_group || contains(said.output, "Example")) << said.output;
  }
  EXPECT_GT(commands, 25u);
  EXPECT_TRUE(begins(baton({"--help"}).output, "baton coordinates work")) << baton({"--help"}).output;
  EXPECT_EQ(baton({"--version"}).exit_code, 0);
}

// X8: wherever it listens, what it says can be tried as it is printed.
TEST(Serve, SaysWhatToTryWhereItListens) {
  const TemporaryDirectory data;
  crash::Child server({.command = {BATON_PROGRAM, "serve", "--data", data.path() + "/data", "--listen",
                                   "127.0.0.2:0", "--http", "127.0.0.3:0"},
                       .environment = {}});
  std::vector<std::string> said;
  server.listen(crash::after_ms(30'000), [&](const std::string& line) {
    said.push_back(line);
    return !contains(line, "curl");
  });
  std::smatch listens;
  ASSERT_TRUE(!said.empty() && std::regex_search(said.front(), listens,
                                                 std::regex("RESP on (127[.]0[.]0[.]2:[0-9]+) and HTTP on "
                                                            "(127[.]0[.]0[.]3:[0-9]+)")));
  const std::string connect = "--connect " + listens[1].str();
  EXPECT_EQ(std::ranges::count_if(said, [&](const auto& line) { return contains(line, connect); }), 3);
  EXPECT_TRUE(contains(said.back(), "http://" + listens[2].str() + "/v1/queues")) << said.back();
}

TEST(Token, IsShownOnceBesideItsLine) {
  const Said said = baton({"token", "ci", "--allow", "default=submit"});
  EXPECT_TRUE(begins(said.output, "ci ") && contains(said.output, " default=submit\n")) << said.output;
  EXPECT_TRUE(contains(said.errors, "which is shown only now:\n")) << said.errors;
  EXPECT_TRUE(begins(baton({"token", "ci", "--json"}).output, R"({"name":"ci","token":")"));
  for (const auto& [arguments, expected] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"token", "ci", "--allow", "default=everything"}, "baton: --allow: 'default=everything' is not "},
           {{"token", "ci", "--allow", ""}, "baton: --allow: nothing is allowed "},
           {{"token", "two words"}, "baton: 'two words' is no name: 1 to 128 "},
           {{"token", "a#b"}, "baton: 'a#b' is no name: "}}) {
    const Said wrong = baton(arguments);
    EXPECT_EQ(wrong.exit_code, 64) << wrong.errors;
    EXPECT_TRUE(begins(wrong.errors, expected)) << wrong.errors;
    EXPECT_TRUE(contains(wrong.errors, "\nbaton token --help tells how it is used\n")) << wrong.errors;
  }
}

TEST(StreamCommands, SayWhatMakesNoSenseAndWhereToReadOn) {
  for (const auto& [arguments, expected] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"stream", "migrate"}, "which database? Give --database URL"},
           {{"stream", "status", "--connect", "a:1", "--database", "b", "--json"}, "name two places"},
           {{"stream", "status", "--connect", "127.0.0.1"}, "--connect: '127.0.0.1' is not HOST:PORT"}}) {
    const Said said = baton(arguments);
    EXPECT_EQ(said.exit_code, 64) << said.errors;
    EXPECT_TRUE(contains(said.errors, expected)) << said.errors;
    EXPECT_TRUE(contains(said.errors, "\nbaton stream " + arguments[1] + " --help tells how "))
        << said.errors;
    EXPECT_EQ(said.output, "");
  }
}

TEST(LogCommands, SayThatThereIsNoLogAndLeaveNothingBehind) {
  const TemporaryDirectory temporary;
  const std::string nowhere = temporary.path() + "/nowhere", target = temporary.path() + "/target";
  for (const char* command : {"verify", "dump", "stat", "backup", "restore"}) {
    for (const std::string& directory : {nowhere, temporary.path()}) {
      std::vector<std::string> arguments = {"log", command, directory};
      if (command == std::string_view("backup") || command == std::string_view("restore"))
        arguments.push_back(target);
      const Said said = baton(arguments);
      EXPECT_EQ(said.exit_code, kUnreadable) << command << said.errors;
      EXPECT_TRUE(begins(said.errors, "baton: NOT_FOUND: ") ||
                  begins(said.errors, "baton: " + directory + ": NOT_FOUND: "))
          << command << said.errors;
      EXPECT_TRUE(std::filesystem::is_empty(temporary.path())) << command << " " << directory;
      arguments.emplace_back("--json");
      EXPECT_TRUE(begins(baton(arguments).output, R"({"error":{"code":"NOT_FOUND","message":")")) << command;
    }
  }
}

TEST(Demo, ShowsEveryEntryAndWhatBecameOfTheTasks) {
  const TemporaryDirectory temporary;
  const std::string data = temporary.path() + "/data";
  const Said said = baton({"demo", "--data", data, "--tasks", "3", "--workers", "1"});
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  EXPECT_TRUE(begins(said.output, "Opened " + data + ": 0 entries replayed")) << said.output;
  EXPECT_TRUE(contains(said.output, "TaskCreated")) << said.output;
  EXPECT_TRUE(contains(said.output, "tasks completed, each once: 3.")) << said.output;
}

TEST(Demo, LeavesTheDirectoryOfAServerAlone) {
  const TemporaryDirectory temporary;
  const Said said = run_program(
      {"/bin/bash", "-c",
       "cd " + temporary.path() + " && " BATON_PROGRAM " demo --tasks 1 --workers 1 >/dev/null && ls"});
  EXPECT_EQ(said.output, "demo-data\n") << said.errors;
}

TEST(Demo, SaysWhyItCannotOpenItsDirectory) {
  const TemporaryDirectory temporary;
  const Said said = baton({"demo", "--data", temporary.path() + "/no/such/place"});
  EXPECT_EQ(said.exit_code, 1);
  EXPECT_TRUE(begins(said.errors, "baton: NOT_FOUND: ")) << said.errors;
}

TEST(LogDump, PrintsEachEntryOnALine) {
  const Said all = baton({"log", "dump", demo_directory()});
  EXPECT_EQ(all.exit_code, 0) << all.errors;
  EXPECT_GE(lines(all.output), 4u * 3);
  EXPECT_TRUE(contains(all.output, "EpochStarted")) << all.output;
  EXPECT_TRUE(contains(all.output, "TaskCompleted")) << all.output;
  // As the other commands take them.
  EXPECT_TRUE(std::regex_search(all.output, std::regex("LeaseGranted   id=[0-9a-f]+-[0-9a-f]+ worker=")))
      << all.output;
  EXPECT_FALSE(contains(all.output, " task=")) << all.output;

  const Said some = baton({"log", "dump", demo_directory(), "--from", "2", "--to", "4"});
  EXPECT_EQ(some.exit_code, 0) << some.errors;
  EXPECT_EQ(lines(some.output), 3u) << some.output;
  EXPECT_TRUE(contains(all.output, some.output)) << some.output;

  const Said json = baton({"log", "dump", demo_directory(), "--json"});
  EXPECT_EQ(lines(json.output), lines(all.output));
  EXPECT_TRUE(begins(json.output, "{\"")) << json.output;
}

TEST(LogStat, CountsEntriesByKind) {
  const Said said = baton({"log", "stat", demo_directory()});
  EXPECT_EQ(said.exit_code, 0) << said.errors;
  EXPECT_TRUE(begins(said.output, "1 segment, 8388608 bytes in all, 0 snapshots, entries 1 to "))
      << said.output;
  EXPECT_TRUE(contains(said.output, "\nTaskCreated                 4 ")) << said.output;
  EXPECT_TRUE(contains(said.output, "\nTaskCompleted               4 ")) << said.output;
  const Said json = baton({"log", "stat", demo_directory(), "--json"});
  EXPECT_TRUE(begins(json.output, R"({"segments":1,"bytes":8388608,"snapshots":0,"first_lsn":1,)"))
      << json.output;
  EXPECT_TRUE(contains(json.output, R"("TaskCreated":{"records":4,)")) << json.output;
}

TEST(LogBackup, MakesACopyThatRestoresToTheSameLog) {
  const TemporaryDirectory temporary;
  const std::string backup = temporary.path() + "/backup", restored = temporary.path() + "/restored";
  const Said made = baton({"log", "backup", demo_directory(), backup});
  EXPECT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_TRUE(begins(made.output, "backed up to " + backup + ": 1 segment and 0 snapshots, up to entry "))
      << made.output;
  const Said back = baton({"log", "restore", backup, restored});
  EXPECT_EQ(back.exit_code, 0) << back.errors;
  EXPECT_TRUE(begins(back.output, "restored to " + restored + ": 1 segment ")) << back.output;
  EXPECT_EQ(baton({"log", "dump", restored}).output, baton({"log", "dump", demo_directory()}).output);
  EXPECT_EQ(baton({"demo", "--data", restored, "--tasks", "1"}).exit_code, 0);  // it goes on from there
}

TEST(LogBackup, TouchesNoDirectoryThatHoldsALog) {
  const TemporaryDirectory temporary;
  const std::string backup = temporary.path() + "/backup";
  ASSERT_EQ(baton({"log", "backup", demo_directory(), backup}).exit_code, 0);
  const std::string before = baton({"log", "dump", backup}).output;
  for (const char* command : {"backup", "restore"}) {
    const Said again = baton({"log", command, demo_directory(), backup});
    EXPECT_NE(again.exit_code, 0) << again.output;
    EXPECT_TRUE(begins(again.errors, "baton: ")) << again.errors;
    EXPECT_TRUE(contains(again.errors, backup)) << again.errors;  // it is the target that is in the way
  }
  EXPECT_EQ(baton({"log", "dump", backup}).output, before);
}

TEST(LogCommands, SayWhatIsDamaged) {
  const TemporaryDirectory temporary;
  const std::string data = temporary.path() + "/data", target = temporary.path() + "/target";
  ASSERT_EQ(baton({"log", "backup", demo_directory(), data}).exit_code, 0);
  {
    std::fstream segment(data + "/wal/0000000000000001.seg", std::ios::in | std::ios::out | std::ios::binary);
    segment.seekp(4096 + 100);
    segment.put('\xff');
  }
  for (const char* command : {"dump", "stat", "backup", "restore"}) {
    std::vector<std::string> arguments = {"log", command, data};
    if (command == std::string_view("backup") || command == std::string_view("restore"))
      arguments.push_back(target);
    const Said said = baton(arguments);
    EXPECT_EQ(said.exit_code, kDamaged) << command << said.errors;
    EXPECT_TRUE(begins(said.errors, "baton: " + data + ": ")) << command << said.errors;
    EXPECT_TRUE(contains(said.errors, "wal/0000000000000001.seg, offset 4096")) << command << said.errors;
    EXPECT_FALSE(std::filesystem::exists(target + "/CONTROL")) << command;
  }
}

}  // namespace
}  // namespace baton::cli
