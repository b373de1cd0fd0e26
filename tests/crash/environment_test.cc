// A data directory that cannot be used is refused with a code, a reason and an advice, and stays as it was.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/hash.h"
#include "engine/coordinator.h"
#include "log/posix_disk.h"
#include "log/recovery.h"
#include "tests/crash/child.h"
#include "tests/temporary_directory.h"

namespace baton::crash {
namespace {

namespace fs = std::filesystem;
constexpr uid_t kNobody = 65534;

CoordinatorOptions small() {
  CoordinatorOptions options;
  options.log = {.segment_bytes = 64 << 10, .batch_bytes = 16 << 10};
  return options;
}

std::string read_whole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// All files and their bytes, but for the lock.
std::map<std::string, std::string> content(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file() && entry.path().filename() != "LOCK")
      files[entry.path()] = read_whole(entry.path());
  }
  return files;
}

// A closed directory with a snapshot.
void make_directory(const std::string& path) {
  auto coordinator = Coordinator::open(path, small());
  ASSERT_TRUE(coordinator);
  for (int count = 0; count < 40; ++count) {
    ASSERT_TRUE((*coordinator)->submit({.ns = "n", .queue = "q", .payload = Blob(std::string(3000, 'p'))}));
  }
  ASSERT_TRUE((*coordinator)->make_snapshot());
  ASSERT_TRUE((*coordinator)->close());
}

// Writes `bytes` at `offset` and makes the checksum at `crc_at`, over all before it, right again.
void patch(const fs::path& path, std::size_t offset, const std::string& bytes, std::size_t crc_at) {
  std::string text = read_whole(path);
  text.replace(offset, bytes.size(), bytes);
  const std::uint32_t crc = crc32c(bytes_of(std::string_view(text).substr(0, crc_at)));
  std::memcpy(text.data() + crc_at, &crc, sizeof crc);
  std::ofstream(path, std::ios::binary) << text;
}

void expect_refused(const std::string& directory, Errc code, const std::string& advice) {
  const auto before = fs::is_directory(directory) ? content(directory) : std::map<std::string, std::string>{};
  const auto opened = Coordinator::open(directory, small());
  ASSERT_FALSE(opened);
  EXPECT_EQ(word(opened.error().code), word(code)) << opened.error().message;
  EXPECT_NE(opened.error().message.find(advice), std::string::npos) << opened.error().message;
  if (fs::is_directory(directory)) {
    EXPECT_EQ(content(directory), before) << "something was changed";
  }
}

fs::path any_file(const std::string& directory) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".tmp") return entry.path();
  }
  return {};
}

class BadEnvironment : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  const std::string data_ = directory_.path() + "/data";

  // Opens the directory as a user who is not root; prints what came of it.
  void open_as_nobody() {
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(99);
    const auto opened = Coordinator::open(data_, small());
    if (!opened) fmt::print(stderr, "{}: {}\n", word(opened.error().code), opened.error().message);
    ::_exit(opened ? 0 : 1);
  }
};

TEST_F(BadEnvironment, ControlFileOfANewerVersionIsRefused) {
  make_directory(data_);
  patch(data_ + "/CONTROL", 8, std::string("\x02\x00", 2), 44);
  expect_refused(data_, Errc::unsupported_version, "use the version of baton that wrote it, or a newer one");
}

TEST_F(BadEnvironment, SegmentOfANewerVersionIsRefused) {
  make_directory(data_);
  patch(any_file(data_ + "/wal"), 8, std::string("\x02\x00", 2), 508);
  expect_refused(data_, Errc::unsupported_version, "baton");
}

TEST_F(BadEnvironment, SegmentWithAnUnknownFeatureIsRefused) {
  make_directory(data_);
  patch(any_file(data_ + "/wal"), 12, std::string("\x01", 1), 508);
  expect_refused(data_, Errc::unsupported_version, "baton");
}

TEST_F(BadEnvironment, SnapshotOfANewerVersionIsRefused) {
  make_directory(data_);
  patch(any_file(data_ + "/snap"), 8, std::string("\x02\x00", 2), 60);
  expect_refused(data_, Errc::unsupported_version, "newer version of baton");
}

TEST_F(BadEnvironment, DirectoryOfAnotherProcessIsRefused) {
  Child child({.command = {BATON_CRASH_WORKER, data_, "1", "1"}});
  child.listen(after_ms(20'000), [](const std::string& line) { return !line.starts_with("R "); });
  child.stop();  // it holds the lock all the same, and changes nothing while we look
  expect_refused(data_, Errc::locked, "stop it first");
  child.signal(SIGCONT);
  child.signal(SIGKILL);
  child.wait(after_ms(10'000));
  const auto opened = Coordinator::open(data_, small());
  EXPECT_TRUE(opened) << opened.error().message;
}

TEST_F(BadEnvironment, DirectoryOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  make_directory(data_);
  fs::permissions(directory_.path(), fs::perms::all);
  EXPECT_EXIT(open_as_nobody(), testing::ExitedWithCode(1), "PERMISSION_DENIED: .*run as the owner");
}

TEST_F(BadEnvironment, DirectoryThatCannotBeWrittenIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  fs::permissions(directory_.path(), fs::perms::all);
  fs::create_directory(data_);
  ASSERT_EQ(::chown(data_.c_str(), kNobody, kNobody), 0);
  fs::permissions(data_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EXIT(open_as_nobody(), testing::ExitedWithCode(1), "PERMISSION_DENIED: .*run as the owner");
  EXPECT_TRUE(fs::is_empty(data_));
}

TEST_F(BadEnvironment, ReadOnlyFileSystemIsRefused) {
  make_directory(data_);
  const auto before = content(data_);
  const std::string script =
      "mount --bind \"$1\" \"$1\" 2>/dev/null && mount -o remount,ro,bind \"$1\" 2>/dev/null || exit 99; "
      "exec \"$0\" \"$1\" 1 report";
  const Ran ran =
      run({.command = {"/usr/bin/unshare", "-m", "/bin/sh", "-c", script, BATON_CRASH_SCRIPT, data_}});
  if (ran.exit.code == 99 || ran.errors.find("unshare") != std::string::npos) GTEST_SKIP() << "no mount here";
  EXPECT_EQ(ran.exit.code, 1);
  EXPECT_NE(ran.errors.find("PERMISSION_DENIED: "), std::string::npos) << ran.errors;
  EXPECT_NE(ran.errors.find("on a file system that can be written"), std::string::npos) << ran.errors;
  EXPECT_EQ(content(data_), before);
}

TEST_F(BadEnvironment, PathOfAFileIsRefused) {
  std::ofstream(data_) << "a file";
  expect_refused(data_, Errc::invalid_request, "choose the path of a directory");
  EXPECT_EQ(read_whole(data_), "a file");
}

TEST_F(BadEnvironment, PathWithoutAParentIsRefused) {
  expect_refused(data_ + "/deeper/still", Errc::not_found,
                 "check the path, and that the directory above it exists");
  EXPECT_FALSE(fs::exists(data_));
}

}  // namespace
}  // namespace baton::crash
