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

// Ever more rarely, and not for ever. `missed` is told of the first failure that may pass.
template <class Call, class Missed>
auto persistently(Call call, Duration at_most, const std::stop_token& stop, const Missed& missed)
    -> decltype(call()) {
  const std::int64_t until_ms = steady_ms() + at_most.ms;
  for (Duration delay = milliseconds(100);; delay = std::min(delay + delay, seconds(5))) {
    auto answer = call();
    if (answer || !is_transient(answer.error().code) || steady_ms() > until_ms) return answer;
    if (delay == milliseconds(100)) missed(answer.error());
    if (pause(delay, stop)) return answer;
  }
}

}  // namespace baton::pipeline
