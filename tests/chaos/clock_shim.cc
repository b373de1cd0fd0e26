#include "tests/chaos/clock_shim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace {

using baton::chaos::ClockPage;

ClockPage* shared_page() {
  static ClockPage* const page = [] {
    const char* path = std::getenv(baton::chaos::kClockPage);
    const int file = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return static_cast<ClockPage*>(nullptr);
    void* mapped = ::mmap(nullptr, sizeof(ClockPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return mapped == MAP_FAILED ? nullptr : static_cast<ClockPage*>(mapped);
  }();
  return page;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* now) {
  static const auto real =
      reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int failed = real(clock, now);
  ClockPage* page = clock == CLOCK_REALTIME ? shared_page() : nullptr;
  if (failed != 0 || page == nullptr) return failed;
  ++page->readings;
  now->tv_sec += page->shift_ms / 1000;
  return 0;
}
