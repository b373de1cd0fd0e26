// When instances were last heard of. Soft: the log knows it less exactly, so that calls without work write
// nothing. After a restart everybody counts as just heard of.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "base/time.h"
#include "core/stream/streams.h"

namespace baton::core {

class Presence {
 public:
  void begin(Instant now) { began_ = now; }
  void heard(const streams::Instance& instance, Instant now) { heard_[instance.number] = now; }
  void forget_silent_since(Instant then) {
    std::erase_if(heard_, [&](const auto& item) { return item.second < then; });
  }
  Instant last_heard(const streams::Instance& instance) const {
    const auto found = heard_.find(instance.number);
    return std::max({instance.heard, began_, found == heard_.end() ? Instant{} : found->second});
  }

 private:
  Instant began_;
  std::unordered_map<streams::Number, Instant> heard_;
};

}  // namespace baton::core
