// The examples of pipeline files, each in a copy of its folder and with worker processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/crash/child.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

class AnExampleOfProcesses : public ::testing::Test {
 protected:
  void copy(const std::string& name) {
    fs::copy(std::string(BATON_EXAMPLES) + "/" + name, folder_.path(), fs::copy_options::recursive);
  }
  crash::Ran baton(std::vector<std::string> words) {
    words.insert(words.begin(), BATON_PROGRAM);
    return crash::run({.command = std::move(words)}, 120'000);
  }
  crash::Ran run(std::vector<std::string> more) {
    more.insert(more.begin(), {"run", folder_.path() + "/pipeline.yaml"});
    return baton(std::move(more));
  }
  std::string contents(const std::string& name) {
    std::ifstream file(folder_.path() + "/" + name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  TemporaryDirectory folder_;
};

TEST_F(AnExampleOfProcesses, BuildsAndTestsOnAMatrixOfMachines) {  // P8 P9 P14 P15
  copy("matrix_build");
  const std::vector<std::string> how = {"--workers", "2", "--cap", "debug", "--cap", "release"};
  const crash::Ran first = run(how);
  EXPECT_EQ(first.exit.code, 0) << ::testing::PrintToString(first.lines) << first.errors;
  EXPECT_THAT(first.lines, Contains(HasSubstr("all is well")).Times(2));
  EXPECT_THAT(first.lines.back(), HasSubstr("calculator succeeded"));
  fs::remove_all(folder_.path() + "/out");
  const crash::Ran again = run(how);
  EXPECT_EQ(again.exit.code, 0) << ::testing::PrintToString(again.lines);
  EXPECT_THAT(again.lines.back(), HasSubstr("2 cached"));
  std::ofstream(folder_.path() + "/src/calculator.cc", std::ios::app) << "// better\n";
  EXPECT_THAT(run(how).lines.back(), ::testing::Not(HasSubstr("cached")));
  EXPECT_THAT(baton({"pipeline", "why", "build[debug]", "--dir", folder_.path()}).lines,
              Contains(HasSubstr("input src/calculator.cc changed")));
}

TEST_F(AnExampleOfProcesses, IsValidInTheDocumentsToo) {  // P14
  std::ifstream page(std::string(BATON_EXAMPLES) + "/../docs/pipelines.md");
  std::string line;
  std::size_t examples = 0;
  while (std::getline(page, line)) {
    if (line != "```yaml") continue;
    std::string text;
    while (std::getline(page, line) && line != "```") text += line + "\n";
    if (!text.starts_with("version:")) continue;
    ++examples;
    std::ofstream(folder_.path() + "/pipeline.yaml") << text;
    const crash::Ran ran = baton({"pipeline", "plan", folder_.path() + "/pipeline.yaml"});
    EXPECT_EQ(ran.exit.code, 0) << text << ran.errors;
  }
  EXPECT_GT(examples, 0u);
}

TEST_F(AnExampleOfProcesses, CountsWordsInParts) {  // P14 P15
  copy("word_count");
  const crash::Ran ran = run({"--workers", "3", "--only-master"});
  EXPECT_EQ(ran.exit.code, 0) << ::testing::PrintToString(ran.lines) << ran.errors;
  EXPECT_THAT(contents("words"), HasSubstr("11 the\n"));
}

}  // namespace
}  // namespace baton::pipeline
