#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "base/check.h"
#include "tests/crash/child.h"

namespace baton::crash {

Shim::Shim(const std::string& page_path, std::string directory)
    : page_path_(page_path), directory_(std::move(directory)) {
  const int descriptor = ::open(page_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  BATON_CHECK(descriptor >= 0 && ::ftruncate(descriptor, sizeof(ShimPage)) == 0);
  void* page = ::mmap(nullptr, sizeof(ShimPage), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  BATON_CHECK(page != MAP_FAILED);
  ::close(descriptor);
  page_ = static_cast<ShimPage*>(page);
}

Shim::~Shim() { ::munmap(page_, sizeof(ShimPage)); }

void Shim::reset() { std::memset(static_cast<void*>(page_), 0, sizeof(ShimPage)); }

std::vector<std::pair<std::string, std::string>> Shim::environment() const {
  std::vector<std::pair<std::string, std::string>> variables = {
      {"LD_PRELOAD", BATON_POWER_SHIM},
      {kShimDirectory, directory_},
      {kShimPage, page_path_},
      {kShimSeed, std::to_string(seed)},
      {kShimEarly, std::to_string(early_percent)},
      {kShimSyncUs, std::to_string(sync_us)},
  };
  if (!fail.empty()) variables.emplace_back(kShimFail, fail);
  return variables;
}

}  // namespace baton::crash
