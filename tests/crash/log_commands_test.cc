// `baton log ...` on real files: what it says, to whom, and with which exit code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/recovery.h"
#include "engine/snapshot.h"
#include "log/posix_disk.h"
#include "tests/crash/child.h"
#include "tests/crash/small_directory.h"
#include "tests/temporary_directory.h"

namespace baton::crash {
namespace {

class LogCommand : public testing::Test {
 protected:
  LogCommand() { store(directory_->disk); }

  void store(const sim::SimDisk& disk) {
    std::filesystem::remove_all(data());
    store_directory(disk, directory_->files, data());
  }
  std::string data() const { return temporary_.path() + "/data"; }
  std::string target() const { return temporary_.path() + "/target"; }

  int baton(const std::string& words) {
    const Ran ran = run({.command = {"/bin/sh", "-c", std::string("exec ") + BATON_PROGRAM + " " + words}});
    output_ = ran.lines;
    said_.clear();
    for (const std::string& line : ran.lines) said_ += line + "\n";
    said_ += ran.errors;
    return ran.exit.signal != 0 ? -ran.exit.signal : ran.exit.code;
  }
  int log(const std::string& command, const std::string& more = "") {
    return baton("log " + command + " " + data() + " " + more);
  }
  // The oldest segment is kept for one payload; entries on both sides of it were removed.
  core::Lsn first_of(std::size_t segment) const {
    return *log::segment_first_lsn(directory_->segments[segment].substr(4));
  }
  core::Lsn last_of_oldest() {
    EXPECT_EQ(log("dump", fmt::format("--to {}", first_of(1) - 1)), 0) << said_;
    EXPECT_GE(output_.size(), 1u);
    return first_of(0) + output_.size() - 1;
  }
  bool says(const std::string& words) const { return said_.find(words) != std::string::npos; }

  const TemporaryDirectory temporary_;
  const std::unique_ptr<SmallDirectory> directory_ = small_directory(Ending::closed);
  std::vector<std::string> output_;
  std::string said_;
};

// Once housekeeping has removed what snapshots cover, nobody can replay from the first entry.
TEST_F(LogCommand, VerifyFullBeginsWithTheOldestSnapshotWhereEntriesWereRemoved) {
  EXPECT_EQ(log("verify", "--full"), 0) << said_;
  EXPECT_TRUE(says("intact")) << said_;
  EXPECT_TRUE(says(fmt::format("entries 1 to {} were removed", first_of(0) - 1))) << said_;
  EXPECT_TRUE(says(directory_->snapshots.front())) << said_;

  // Nothing covers these.
  sim::SimDisk disk(directory_->disk);
  ASSERT_TRUE(disk.remove(directory_->segments[directory_->segments.size() - 2]));
  store(disk);
  EXPECT_EQ(log("verify", "--full"), 4) << said_;
  for (const std::string& path : directory_->snapshots) ASSERT_TRUE(disk.remove(path));
  store(disk);
  EXPECT_EQ(log("verify", "--full"), 4) << said_;
}

TEST_F(LogCommand, CallsALogWithoutControlDamagedAsAStartDoes) {
  std::filesystem::remove(data() + "/CONTROL");
  for (const char* command : {"verify", "stat", "dump", "backup"}) {
    EXPECT_EQ(log(command, std::string(command) == "backup" ? target() : ""), 2) << command << said_;
    EXPECT_TRUE(says("the file is missing although there is a log")) << command << said_;
  }
  EXPECT_FALSE(std::filesystem::exists(target()));
}

TEST_F(LogCommand, EndsWithSeventyFourWhenItsOutputCannotBeWritten) {
  for (const char* command : {"verify", "stat", "dump", "dump --json"}) {
    EXPECT_EQ(log(command, "> /dev/full"), 74) << command << said_;
    EXPECT_TRUE(says("No space left on device")) << said_;
  }
  EXPECT_EQ(baton("demo --tasks 2 --data " + target() + " > /dev/full"), 74) << said_;
}

// Also of segments that are kept only for a payload.
TEST_F(LogCommand, DumpPrintsEveryEntryThatIsThereAndTellsWhichAreNot) {
  const core::Lsn last = last_of_oldest();
  EXPECT_TRUE(says(fmt::format("entries before {} and {} to {} were removed; snapshots cover them",
                               first_of(0), last + 1, first_of(1) - 1)))
      << said_;
  ASSERT_EQ(log("dump"), 0);
  const std::string count = std::to_string(output_.size());
  ASSERT_EQ(log("stat"), 0);
  EXPECT_TRUE(says("(" + count + " in all, epoch ")) << said_;
  EXPECT_TRUE(says(std::to_string(directory_->segments.size()) + " segments, ")) << said_;
  EXPECT_TRUE(says("bytes in all")) << said_;
  ASSERT_EQ(log("verify"), 0);
  EXPECT_TRUE(says("(" + count + " in all)")) << said_;
  EXPECT_TRUE(says(fmt::format("entries {} to {}, {} to ", first_of(0), last, first_of(1)))) << said_;
}

TEST_F(LogCommand, NamesTheTargetWhenTheTargetIsWrong) {
  ASSERT_EQ(log("backup", target()), 0) << said_;
  for (const char* command : {"backup", "restore"}) {
    EXPECT_EQ(log(command, target()), 74);
    EXPECT_TRUE(says("baton: " + target() + ": CONFLICT")) << said_;
    EXPECT_TRUE(says("choose a directory that is empty or does not exist")) << said_;
  }
  EXPECT_EQ(baton("log verify " + target()), 0) << said_;
  EXPECT_EQ(baton("log verify nosuch"), 74);
  EXPECT_FALSE(says("nosuch: NOT_FOUND")) << said_;
}

TEST_F(LogCommand, TakesAwayTheDirectoryItMadeForACopyThatFailed) {
  const auto spoil = [](const std::string& directory, const std::string& segment) {
    auto disk = log::PosixDisk::open_directory(directory);
    ASSERT_TRUE(disk);
    ASSERT_TRUE((*(*disk)->open(segment))->write(4096 + 100, bytes_of("?")));
  };
  spoil(data(), directory_->segments.back());
  for (const char* command : {"backup", "restore"}) {
    EXPECT_EQ(log(command, target()), 2) << said_;
    EXPECT_FALSE(std::filesystem::exists(target()));
  }
  // One that was there stays, without a log.
  std::filesystem::create_directory(target());
  EXPECT_EQ(log("backup", target()), 2) << said_;
  EXPECT_TRUE(std::filesystem::exists(target()));
  EXPECT_FALSE(std::filesystem::exists(target() + "/CONTROL"));
}

TEST_F(LogCommand, VerifyTellsWhatCanBeRead) {
  const auto readable = [&](const std::string& segment) {
    sim::SimDisk disk(directory_->disk);
    disk.flip_bit(segment, 40, 3);
    store(disk);
    EXPECT_EQ(log("verify"), 2) << said_;
    EXPECT_FALSE(says("`baton log verify`")) << said_;
    const auto at = said_.find("readable: ");
    return at == std::string::npos ? said_ : said_.substr(at, said_.find(", in ", at) - at);
  };
  const std::string oldest = fmt::format("readable: {} to {}", first_of(0), last_of_oldest());
  EXPECT_EQ(readable(directory_->segments[1]), oldest);
  EXPECT_EQ(readable(directory_->segments[2]),
            oldest + fmt::format(", {} to {}", first_of(1), first_of(2) - 1));
  EXPECT_EQ(readable(directory_->segments[0]), "readable: nothing");
}

TEST_F(LogCommand, AdvisesWhenASnapshotIsDamaged) {
  sim::SimDisk disk(directory_->disk);
  disk.flip_bit(directory_->snapshots[1], 40, 3);
  store(disk);
  EXPECT_EQ(log("verify"), 2);
  EXPECT_TRUE(says(directory_->snapshots[1])) << said_;
  EXPECT_TRUE(says("A start uses the other snapshot")) << said_;
  EXPECT_EQ(log("backup", target()), 2);
  EXPECT_TRUE(says("then make a backup")) << said_;

  disk.flip_bit(directory_->snapshots[0], 40, 3);
  const auto refused = engine::recover(disk, {.log = kSweptLog});
  ASSERT_FALSE(refused);
  for (const std::string& words :
       {std::string("no snapshot can be read"), directory_->snapshots[0], directory_->snapshots[1],
        fmt::format("records 1 to {}", first_of(0) - 1)}) {
    EXPECT_NE(refused.error().message.find(words), std::string::npos) << refused.error().message;
  }
}

}  // namespace
}  // namespace baton::crash
