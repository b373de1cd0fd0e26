// A call that is made again until somebody answers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stop_token>

#include "base/pause.h"
#include "base/result.h"
#include "base/time.h"
#include "pipeline/pulse.h"
#include "pipeline/steady_time.h"

namespace baton::pipeline {

// Ever more rarely, and not for ever: for so long since it first failed, since a call may wait on purpose.
// `missed` is told of the first failure that may pass.
template <class Call, class Missed>
auto persistently(Call call, Duration at_most, const std::stop_token& stop, const Missed& missed)
    -> decltype(call()) {
  std::int64_t until_ms = 0;  // not yet known
  for (Duration delay = milliseconds(100);; delay = std::min(delay + delay, seconds(5))) {
    auto answer = call();
    if (answer || !is_transient(answer.error().code)) return answer;
    if (until_ms == 0) {
      until_ms = steady_ms() + at_most.ms;
      missed(answer.error());
    }
    if (steady_ms() > until_ms || pause(delay, stop)) return answer;
  }
}

}  // namespace baton::pipeline
