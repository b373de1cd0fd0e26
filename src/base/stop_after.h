// A stop token that is triggered when some time is over: for calls that know no deadline of their own.
#pragma once

#include <stop_token>
#include <thread>

#include "base/pause.h"

namespace baton {

class StopAfter {
 public:
  explicit StopAfter(Duration time)
      : thread_([late = late_, time](const std::stop_token& done) mutable {
          if (!pause(time, done)) late.request_stop();
        }) {}

  std::stop_token token() const { return late_.get_token(); }

 private:
  std::stop_source late_;
  std::jthread thread_;
};

}  // namespace baton
