// The power shim keeps its own promises; without that, no test that rests on it means anything.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "tests/crash/child.h"
#include "tests/temporary_directory.h"

namespace baton::crash {
namespace {

class PowerShim : public testing::Test {
 protected:
  PowerShim() { std::filesystem::create_directory(data_); }

  std::string at(const std::string& name) const { return data_ + "/" + name; }

  // Runs the operations, then cuts the power.
  std::vector<std::string> do_and_cut(std::vector<std::string> operations) {
    operations.insert(operations.begin(), BATON_SHIM_PROBE);
    Child child({.command = operations, .environment = shim_.environment()});
    std::vector<std::string> lines;
    child.listen(after_ms(10'000), [&](const std::string& line) {
      lines.push_back(line);
      return line != "done";
    });
    child.signal(SIGKILL);
    EXPECT_EQ(child.wait(after_ms(10'000)).signal, SIGKILL) << child.errors();
    EXPECT_FALSE(lines.empty() || lines.back() != "done");
    return lines;
  }

  std::string content(const std::string& name) const {
    std::ifstream file(at(name));
    if (!file) return "(none)";
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TemporaryDirectory directory_;
  const std::string data_ = directory_.path() + "/data";
  Shim shim_{directory_.path() + "/page", data_};
};

TEST_F(PowerShim, LosesWhatWasNotSynced) {
  do_and_cut({"write", at("a"), "old", "sync", at("a"), "syncdir", data_, "write", at("a"), "new"});
  EXPECT_EQ(content("a"), "old");
}

TEST_F(PowerShim, KeepsWhatWasSynced) {
  do_and_cut({"write", at("a"), "text", "sync", at("a"), "syncdir", data_, "write", at("a"), "more", "sync",
              at("a")});
  EXPECT_EQ(content("a"), "more");
}

TEST_F(PowerShim, KeepsOnlyTheseBytesOfADurableWrite) {
  const std::string sector(512, 'o');
  do_and_cut({"write", at("a"), sector + sector, "sync", at("a"), "syncdir", data_, "write", at("a"), "new",
              "write_durably", at("a"), "new"});
  EXPECT_EQ(content("a"), sector + "new" + sector.substr(3));
}

TEST_F(PowerShim, LosesANameWhoseDirectoryWasNotSynced) {
  do_and_cut({"write", at("a"), "text", "sync", at("a")});
  EXPECT_EQ(content("a"), "(none)");
}

TEST_F(PowerShim, UndoesARenameWhoseDirectoryWasNotSynced) {
  do_and_cut({"write", at("a"), "text", "sync", at("a"), "syncdir", data_, "rename", at("a"), at("b")});
  EXPECT_EQ(content("a"), "text");
  EXPECT_EQ(content("b"), "(none)");
  do_and_cut({"rename", at("a"), at("b"), "syncdir", data_});
  EXPECT_EQ(content("a"), "(none)");
  EXPECT_EQ(content("b"), "text");
}

TEST_F(PowerShim, UndoesARemovalWhoseDirectoryWasNotSynced) {
  do_and_cut({"write", at("a"), "text", "sync", at("a"), "syncdir", data_, "unlink", at("a")});
  EXPECT_EQ(content("a"), "text");
  do_and_cut({"unlink", at("a"), "syncdir", data_});
  EXPECT_EQ(content("a"), "(none)");
}

TEST_F(PowerShim, KeepsADirectoryOnlyOnceItsParentIsSynced) {
  const std::vector<std::string> inner = {"mkdir", at("d"),   "write",   at("d/a"), "text",
                                          "sync",  at("d/a"), "syncdir", at("d")};
  do_and_cut(inner);
  EXPECT_FALSE(std::filesystem::exists(at("d")));
  std::vector<std::string> all = inner;
  all.insert(all.end(), {"syncdir", data_});
  do_and_cut(all);
  EXPECT_EQ(content("d/a"), "text");
}

TEST_F(PowerShim, ShowsTheProcessItsOwnWrites) {
  const auto lines = do_and_cut({"write", at("a"), "text", "read", at("a"), "rename", at("a"), at("b"),
                                 "list", data_, "read", at("a"), "read", at("b")});
  const std::vector<std::string> expected = {"read text", "entry b", "failed read No such file or directory",
                                             "read text", "done"};
  EXPECT_EQ(lines, expected);
}

TEST_F(PowerShim, FailsTheCallItIsTold) {
  shim_.fail = "write:2:EIO:once";
  const auto lines =
      do_and_cut({"write", at("a"), "one", "write", at("a"), "two", "write", at("a"), "three"});
  EXPECT_EQ(lines, (std::vector<std::string>{"failed write Input/output error", "done"}));
  shim_.reset();
  shim_.fail = "write:1:SHORT:ever";
  EXPECT_EQ(do_and_cut({"write", at("a"), "1234"}).front(), "short 2");
  EXPECT_EQ(shim_.page().faults, 1u);
}

TEST_F(PowerShim, LosesTheDataOfAFailedSyncEvenIfTheNextOneSucceeds) {
  shim_.fail = "sync:2:EIO:once";
  do_and_cut({"write", at("a"), "old", "sync", at("a"), "syncdir", data_, "write", at("a"), "new", "sync",
              at("a"), "sync", at("a")});
  EXPECT_EQ(content("a"), "old");
}

TEST_F(PowerShim, HasAsMuchRoomAsItIsTold) {
  shim_.page().capacity_bytes = 6;
  const auto lines = do_and_cut({"write", at("a"), "1234", "write", at("b"), "5678", "write", at("c"), "9"});
  EXPECT_EQ(lines, (std::vector<std::string>{"short 2", "failed write No space left on device", "done"}));
}

TEST_F(PowerShim, LetsPartOfAnUnsyncedWriteThrough) {
  shim_.early_percent = 100;
  const std::string text(8 * 512, 'x');
  do_and_cut({"write", at("a"), "-", "syncdir", data_, "write", at("a"), text});
  const std::string kept = content("a");
  EXPECT_NE(kept, text);
  EXPECT_GT(shim_.page().sectors_early, 0u);
  EXPECT_NE(kept.find(std::string(512, 'x')), std::string::npos);
}

}  // namespace
}  // namespace baton::crash
