// A disk that can be filled and made unwritable. Mounting needs root; tests that may not mount say so and
// skip.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/temporary_directory.h"

namespace baton {

// A small file system, seen by this process alone, so that it is gone with it whatever happens.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& size) : size_("size=" + size) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("baton-test", path().c_str(), "tmpfs", 0, size_.c_str()) != 0)
      trouble_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (trouble_.empty()) ::umount2(path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::string& path() const { return directory_.path(); }
  const std::string& trouble() const { return trouble_; }

  std::uint64_t free_bytes() const {
    struct statvfs status{};
    EXPECT_EQ(::statvfs(path().c_str(), &status), 0);
    return status.f_bavail * status.f_bsize;
  }
  // Somebody else's file takes all that is left.
  void fill() const {
    std::ofstream file(path() + "/others");
    const std::string block(4096, 'x');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void make_room() const { std::filesystem::remove(path() + "/others"); }
  void make_read_only() const {
    ASSERT_EQ(::mount("none", path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, size_.c_str()), 0);
  }

 private:
  const TemporaryDirectory directory_;
  const std::string size_;
  std::string trouble_;
};

#define SKIP_WITHOUT(disk) \
  if (!(disk).trouble().empty()) GTEST_SKIP() << "a file system cannot be mounted here: " << (disk).trouble()

}  // namespace baton
