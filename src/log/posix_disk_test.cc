#include "log/posix_disk.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "log/format.h"
#include "log/posix_file.h"
#include "tests/temporary_directory.h"

namespace baton::log {
namespace {

std::unique_ptr<PosixDisk> disk_in(const TemporaryDirectory& directory) {
  return PosixDisk::open_directory(directory.path()).value();
}

TEST(PosixDisk, MakesFilesOfZeros) {
  const TemporaryDirectory directory;
  auto disk = disk_in(directory);
  auto file = disk->create("zeros", 3'000'001).value();
  EXPECT_EQ(file->size().value(), 3'000'001u);
  Bytes bytes(3'000'002, std::byte{1});
  EXPECT_EQ(file->read(0, bytes).value(), 3'000'001u);
  bytes.pop_back();
  EXPECT_TRUE(all_zero(bytes));
  EXPECT_FALSE(disk->create("zeros", 1)) << "a name is taken once";
}

TEST(PosixDisk, ReadsUncachedFromAnyOffset) {
  const TemporaryDirectory directory;
  auto disk = disk_in(directory);
  Bytes content(3 << 20);
  for (std::size_t at = 0; at < content.size(); ++at) content[at] = static_cast<std::byte>(at * 31 >> 3);
  auto file = disk->create("data", 0).value();
  ASSERT_TRUE(file->write(0, content));
  ASSERT_TRUE(file->sync());
  auto uncached = disk->open_uncached("data").value();
  for (const std::size_t offset : {0u, 1u, 511u, 4095u, 4096u, 4097u, 1u << 20, (2u << 20) - 7}) {
    for (const std::size_t length : {1u, 64u, 4096u, 5000u, (1u << 20) + 5}) {
      Bytes got(length);
      ASSERT_EQ(uncached->read(offset, got).value(), std::min(length, content.size() - offset));
      ASSERT_TRUE(std::ranges::equal(got, std::span(content).subspan(offset, length)));
    }
  }
  Bytes past(100);
  EXPECT_EQ(uncached->read(content.size() - 10, past).value(), 10u);
  EXPECT_EQ(uncached->read(content.size() + 10, past).value(), 0u);
}

// Whether the file system knows of reading without waiting at all.
bool can_tell(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char byte = 0;
  const iovec one{.iov_base = &byte, .iov_len = 1};
  const bool knows = ::preadv2(file, &one, 1, 0, RWF_NOWAIT) >= 0 || errno != EOPNOTSUPP;
  ::close(file);
  return knows;
}

TEST(PosixDisk, ReadsAtOnceWhatIsInMemory) {
  const TemporaryDirectory directory;
  auto file = disk_in(directory)->create("data", 0).value();
  ASSERT_TRUE(file->write(0, bytes_of("0123456789")));
  Bytes some(4), too_much(8);
  EXPECT_FALSE(file->read_at_once(3, too_much)) << "all or nothing";
  if (!can_tell(directory.path() + "/data"))
    GTEST_SKIP() << "no file system here can tell what is in memory: everything is read in the usual way";
  ASSERT_TRUE(file->read_at_once(3, some)) << "it was written a moment ago";
  EXPECT_EQ(text_of(some), "3456");
}

TEST(PosixDisk, ListsNamesInOrder) {
  const TemporaryDirectory directory;
  auto disk = disk_in(directory);
  ASSERT_TRUE(disk->make_directory("d"));
  ASSERT_TRUE(disk->make_directory("d"));
  for (const char* name : {"d/b", "d/a", "d/c"}) ASSERT_TRUE(disk->create(name, 0));
  ASSERT_TRUE(disk->rename("d/c", "d/0"));
  ASSERT_TRUE(disk->sync_directory("d"));
  EXPECT_EQ(disk->list("d").value(), (std::vector<std::string>{"0", "a", "b"}));
  EXPECT_EQ(disk->list("e").error().code, Errc::not_found);
  EXPECT_EQ(disk->open("d/c").error().code, Errc::not_found);
  EXPECT_EQ(disk->remove("d/c").error().code, Errc::not_found);
  EXPECT_GT(disk->free_bytes().value(), 0u);
}

TEST(PosixDisk, ReportsAFullDisk) {
  auto file = posix_file(::open("/dev/full", O_RDWR | O_CLOEXEC), "/dev/full");
  auto written = file->write(0, bytes_of("x"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::no_space);
  EXPECT_NE(written.error().message.find("/dev/full"), std::string::npos);
  EXPECT_NE(written.error().message.find("free some space"), std::string::npos);
}

// The kernel takes what fits under the limit and refuses the rest: a short write, then an error.
TEST(PosixDisk, ReportsAWriteThatStopsHalfWay) {
  const TemporaryDirectory directory;
  auto disk = disk_in(directory);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  auto file = disk->create("large", 1 << 20);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Errc::io_failed);
}

TEST(PosixDisk, SaysWhatToDoWithoutPermission) {
  auto disk = PosixDisk::open_directory("/sys/baton");
  ASSERT_FALSE(disk);
  EXPECT_EQ(disk.error().code, Errc::permission_denied) << disk.error().message;
  EXPECT_NE(disk.error().message.find("owner"), std::string::npos);
}

TEST(PosixDisk, GivesEachKindOfErrorItsCode) {
  const std::pair<int, Errc> expected[] = {
      {ENOSPC, Errc::no_space},         {EDQUOT, Errc::no_space},         {EACCES, Errc::permission_denied},
      {EPERM, Errc::permission_denied}, {EROFS, Errc::permission_denied}, {ENOENT, Errc::not_found},
      {EMFILE, Errc::exhausted},        {EIO, Errc::io_failed},           {EINVAL, Errc::io_failed},
  };
  for (const auto& [number, code] : expected)
    EXPECT_EQ(system_error(number, "write", "x").code, code) << number;
}

}  // namespace
}  // namespace baton::log
