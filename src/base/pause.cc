#include "base/pause.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace baton {

bool pause(Duration duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, std::chrono::milliseconds(duration.ms), [] { return false; });
  return stop.stop_requested();
}

}  // namespace baton
