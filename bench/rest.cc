#include "rest.h"

#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

namespace baton::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWhile(200);
constexpr std::chrono::seconds kAtMost(10);
constexpr std::uint64_t kTicksBusyMax = 2;  // of 10 ms each, of all processors

// Ticks in which a processor had something to do, since the machine started.
std::uint64_t busy_ticks() {
  std::ifstream statistics("/proc/stat");
  std::string all;
  std::uint64_t user = 0, nice = 0, system = 0;
  statistics >> all >> user >> nice >> system;
  return user + nice + system;
}

}  // namespace

void wait_for_rest() {
  const auto end = Clock::now() + kAtMost;
  for (std::uint64_t before = busy_ticks(); Clock::now() < end;) {
    std::this_thread::sleep_for(kWhile);
    const std::uint64_t now = busy_ticks();
    if (now - before <= kTicksBusyMax) return;
    before = now;
  }
}

}  // namespace baton::bench
