#include "pipeline/plain_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace baton::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(APlainCommand, NeedsNoShell) {
  EXPECT_THAT(plain_command("make -j4  CONFIG=Release all\n"),
              ElementsAre("make", "-j4", "CONFIG=Release", "all"));
  EXPECT_THAT(plain_command("./tests/run --only=a,b"), ElementsAre("./tests/run", "--only=a,b"));
}

TEST(APlainCommand, IsNothingThatAShellWouldChange) {
  for (const char* script : {"echo $HOME",   "ls *.cc", "a; b", "a\nb",  "a && b",    "a > b",    "'a b'",
                             "a ~",          "a#",      "{ a",  "a\\ b", "A=1 make",  "cd build", "exit 3",
                             "test -e file", "true",    "if",   "while", "# nothing", "",         " "})
    EXPECT_THAT(plain_command(script), IsEmpty()) << script;
}

}  // namespace
}  // namespace baton::pipeline
