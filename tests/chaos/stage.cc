#include "tests/chaos/stage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>

#include "base/check.h"

namespace baton::chaos {
namespace {

constexpr const char* kDiskBytes = "192M";

bool succeeds(const std::string& script, const std::string& argument) {
  return crash::run({.command = {"/bin/sh", "-ec", script, argument}}).exit.code == 0;
}

}  // namespace

const char* name_of(Setting setting) {
  constexpr const char* kNames[] = {"plain", "power", "clock", "small disk"};
  return kNames[static_cast<int>(setting)];
}

Stage::Stage(Setting setting, std::uint64_t seed) : setting_(setting) {
  if (setting == Setting::power) {
    shim_ = std::make_unique<crash::Shim>(directory_.path() + "/page", data());
    shim_->seed = seed;
    shim_->early_percent = 30;
    shim_->sync_us = 1500;
  }
  if (setting == Setting::clock) {
    const int file = ::open((directory_.path() + "/clock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    BATON_CHECK(file >= 0 && ::ftruncate(file, sizeof(ClockPage)) == 0);
    void* page = ::mmap(nullptr, sizeof(ClockPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    BATON_CHECK(page != MAP_FAILED);
    ::close(file);
    clock_ = static_cast<ClockPage*>(page);
  }
  if (setting == Setting::small_disk) ready_ = mount_disk();
}

Stage::~Stage() {
  if (clock_ != nullptr) ::munmap(clock_, sizeof(ClockPage));
  if (setting_ == Setting::small_disk && ready_) succeeds("umount \"$0\"", place());
}

bool Stage::mount_disk() {
  std::filesystem::create_directory(place());
  return ::geteuid() == 0 &&
         succeeds(std::string("truncate -s ") + kDiskBytes +
                      " \"$0.image\"; mkfs.ext4 -q \"$0.image\"; mount -o loop \"$0.image\" \"$0\"",
                  place());
}

Surroundings Stage::surroundings() const {
  Surroundings surroundings{.directory = data()};
  if (shim_) surroundings.environment = shim_->environment();
  if (clock_ != nullptr)
    surroundings.environment = {{"LD_PRELOAD", BATON_CLOCK_SHIM}, {kClockPage, directory_.path() + "/clock"}};
  return surroundings;
}

void Stage::fill_disk() { succeeds("cat /dev/zero > \"$0/ballast\" 2>/dev/null || true", place()); }
void Stage::make_room() { std::filesystem::remove(place() + "/ballast"); }

void Stage::power_was_cut() {
  if (!shim_) return;
  if (shim_->page().syncs_begun > shim_->page().syncs_ended) ++cut_in_flush_;
  shim_->reset();
}
std::uint64_t Stage::cut_in_flush() const { return cut_in_flush_; }

}  // namespace baton::chaos
