// A disk that breaks, or has a quota. Mounting needs root; tests that may not mount say so and skip.
#pragma once

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/descriptor.h"
#include "tests/temporary_directory.h"

namespace baton {

// A file system on a device that is memory of this process, seen by this process alone: both are gone with
// it, whatever happens.
class FailingDisk {
 public:
  FailingDisk(const std::string& type, const std::string& options, std::int64_t bytes)
      : medium_(::memfd_create("baton-test", MFD_ALLOW_SEALING | MFD_CLOEXEC)) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::ftruncate(medium_.number(), bytes) != 0) {
      trouble_ = std::strerror(errno);
      return;
    }
    const std::string medium =
        "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(medium_.number());
    if (!run("mkfs." + type + " " + options + " " + medium)) {
      trouble_ = "mkfs." + type + " is missing";
      return;
    }
    const Descriptor device = attach();
    const std::string name = "/dev/loop" + std::to_string(device_number_);
    if (!device.is_open() || ::mount(name.c_str(), path().c_str(), type.c_str(), 0, nullptr) != 0)
      trouble_ = std::strerror(errno);
  }
  ~FailingDisk() {
    if (trouble_.empty()) ::umount2(path().c_str(), MNT_DETACH);
  }
  FailingDisk(const FailingDisk&) = delete;
  FailingDisk& operator=(const FailingDisk&) = delete;

  const std::string& path() const { return directory_.path(); }
  const std::string& trouble() const { return trouble_; }

  // A command for this disk, in whose text % is its path.
  bool run_on_it(std::string command) const {
    for (std::size_t at = command.find('%'); at != command.npos; at = command.find('%'))
      command.replace(at, 1, path());
    return run(command);
  }

  // How much of the device is in use: whatever has been written lies below.
  std::int64_t written_end() const {
    const Descriptor root(::open(path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ::syncfs(root.number());
    std::int64_t end = 0;
    for (off_t data = 0; (data = ::lseek(medium_.number(), end, SEEK_DATA)) >= 0;)
      end = ::lseek(medium_.number(), data, SEEK_HOLE);
    return end;
  }
  // From here on the device neither reads nor writes: EIO.
  bool break_from(std::int64_t byte) const {
    return ::ftruncate(medium_.number(), byte) == 0 &&
           ::fcntl(medium_.number(), F_ADD_SEALS, F_SEAL_GROW) == 0;
  }

 private:
  static bool run(const std::string& command) {
    return std::system(("PATH=$PATH:/usr/sbin:/sbin; (" + command + ") >/dev/null 2>&1").c_str()) == 0;
  }

  // The device is free again once nothing is mounted from it. Others look for one, too: whoever is told of a
  // free one may find it taken.
  Descriptor attach() {
    const Descriptor control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
    for (;;) {
      device_number_ = ::ioctl(control.number(), LOOP_CTL_GET_FREE);
      if (device_number_ < 0) return Descriptor();
      Descriptor device(::open(("/dev/loop" + std::to_string(device_number_)).c_str(), O_RDWR | O_CLOEXEC));
      if (!device.is_open()) return device;
      loop_config config{};
      config.fd = static_cast<std::uint32_t>(medium_.number());
      config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
      if (::ioctl(device.number(), LOOP_CONFIGURE, &config) == 0) return device;
      if (errno != EBUSY) return Descriptor();
    }
  }

  const Descriptor medium_;
  const TemporaryDirectory directory_;
  int device_number_ = -1;
  std::string trouble_;
};

}  // namespace baton
