// What may not be begun twice begins only when that is kept, so that it is known after a power cut too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/pipeline/yard.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Where what is under way is noted.
class AModuleThatMayNotBeBegunTwice : public ::testing::Test {
 protected:
  void goes_on_without(const char* where_it_is_noted) {
    const Yard yard(R"(
version: 1
on_failure: continue
modules:
  publish: { idempotent: false, run: 'touch published' }
  build: { run: 'touch built' }
)");
    const std::string run = yard.path() + "/.baton/runs/r";
    fs::create_directories(run);
    fs::create_symlink(where_it_is_noted, run + "/progress");
    const crash::Ran ran = crash::run(yard.run({"--run", "r"}));
    EXPECT_EQ(ran.exit.code, 1);
    EXPECT_FALSE(fs::exists(yard.path() + "/published"));
    EXPECT_TRUE(fs::exists(yard.path() + "/built")) << "the others may be begun once more";
    EXPECT_THAT(yard.contents(".baton/runs/r/journal"),
                HasSubstr("it may not be begun twice, and that it begins could not be noted"));
  }
};

TEST_F(AModuleThatMayNotBeBegunTwice, IsNotBegunWhereThatCannotBeWritten) {  // P17
  goes_on_without("/dev/full");
}

// It takes whatever is written, and cannot be told to keep it.
TEST_F(AModuleThatMayNotBeBegunTwice, IsNotBegunWhereThatCannotBeMadeDurable) {  // P17
  goes_on_without("/dev/null");
}

}  // namespace
}  // namespace baton::pipeline
