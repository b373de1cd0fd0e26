// `baton log verify` on real files: what each exit code stands for.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/event_codec.h"
#include "log/recovery.h"
#include "tests/crash/child.h"
#include "tests/crash/small_directory.h"
#include "tests/temporary_directory.h"

namespace baton::crash {
namespace {

class VerifyCommand : public testing::Test {
 protected:
  int verify(const sim::SimDisk& disk, const SmallDirectory& directory) {
    const TemporaryDirectory temporary;
    store_directory(disk, directory.files, temporary.path());
    return verify(temporary.path());
  }
  int verify(const std::string& path) {
    const Ran ran = run({.command = {BATON_PROGRAM, "log", "verify", path}});
    for (const std::string& line : ran.lines) said_ += line + "\n";
    said_ += ran.errors;
    return ran.exit.code;
  }

  std::string said_;
};

TEST_F(VerifyCommand, SaysZeroToAnIntactDirectory) {
  for (const Ending ending : {Ending::closed, Ending::killed}) {
    const auto directory = small_directory(ending);
    EXPECT_EQ(verify(directory->disk, *directory), 0) << said_;
  }
}

TEST_F(VerifyCommand, SaysOneToATornTail) {
  const auto directory = small_directory(Ending::killed);
  sim::SimDisk disk(directory->disk);
  const std::string& path = directory->segments.back();
  Bytes content = disk.content(path);
  // The header of a batch is there and the sector with its only record's end is not.
  std::size_t used = content.size();
  while (content[used - 1] == std::byte{0}) --used;
  const std::size_t batch = (used - 1) / log::kBlockBytes * log::kBlockBytes;
  std::ranges::copy(ByteView(content).subspan(batch, 64),
                    content.begin() + static_cast<std::ptrdiff_t>(batch));
  std::ranges::fill(std::span(content).subspan(batch, log::kSectorBytes), std::byte{0});
  content[batch + log::kSectorBytes] = std::byte{1};
  disk.set_content(path, content);
  EXPECT_EQ(verify(disk, *directory), 1) << said_;
  EXPECT_NE(said_.find("look like a batch cut off by a power failure"), std::string::npos) << said_;
  EXPECT_NE(said_.find("a start sets it aside in torn/"), std::string::npos) << said_;
}

TEST_F(VerifyCommand, SaysTwoToDamageAnywhere) {
  const auto directory = small_directory(Ending::closed);
  for (const std::string& path : directory->files) {
    sim::SimDisk disk(directory->disk);
    disk.flip_bit(path, 40, 3);
    EXPECT_EQ(verify(disk, *directory), 2) << path << "\n" << said_;
  }
}

// Whole batches with right checksums whose entries cannot be true: a lease on a task that never was.
TEST_F(VerifyCommand, SaysThreeToEntriesThatContradictEachOther) {
  const auto directory = small_directory(Ending::closed);
  auto opened = log::open_log(directory->disk, {.log = kSweptLog}, {});
  if (!opened)
    opened = log::open_log(directory->disk, {.log = kSweptLog, .needed_from = directory->last}, {});
  ASSERT_TRUE(opened) << opened.error().message;
  Bytes body;
  const core::Event event = core::LeaseGranted{.task = 999'999, .attempt = 1, .expiry = {1}, .worker = "w"};
  core::encode(event, body);
  log::LogWriter& writer = *opened->writer;
  writer.append(static_cast<std::uint16_t>(core::type_of(event)), opened->end.time, body);
  auto flush = writer.begin_flush();
  ASSERT_TRUE(flush && writer.perform(*flush));
  writer.finish(std::move(*flush));
  directory->files.push_back(log::segment_path(directory->last + 1));
  EXPECT_EQ(verify(directory->disk, *directory), 3) << said_;
}

TEST_F(VerifyCommand, SaysFourToAMissingSegment) {
  const auto directory = small_directory(Ending::closed);
  sim::SimDisk disk(directory->disk);
  ASSERT_TRUE(disk.remove(directory->segments[directory->segments.size() - 2]));
  EXPECT_EQ(verify(disk, *directory), 4) << said_;
}

TEST_F(VerifyCommand, SaysFiveToANewerVersion) {
  const auto directory = small_directory(Ending::closed);
  sim::SimDisk disk(directory->disk);
  Bytes control = disk.content("CONTROL");
  control[8] = std::byte{2};
  const std::uint32_t crc = crc32c(ByteView(control).first(44));
  store(control.data() + 44, crc);
  disk.set_content("CONTROL", control);
  EXPECT_EQ(verify(disk, *directory), 5) << said_;
}

TEST_F(VerifyCommand, SaysSeventyFourToADirectoryThatCannotBeRead) {
  const TemporaryDirectory temporary;
  EXPECT_EQ(verify(temporary.path() + "/nothing"), 74);
  EXPECT_EQ(verify(temporary.path()), 74);
  EXPECT_NE(said_.find("NOT_FOUND"), std::string::npos) << said_;
}

}  // namespace
}  // namespace baton::crash
