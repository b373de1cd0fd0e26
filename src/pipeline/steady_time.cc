#include "pipeline/steady_time.h"

#include <chrono>

namespace baton::pipeline {

std::int64_t steady_ms() {
  using std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace baton::pipeline
