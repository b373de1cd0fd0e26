// When instances were last heard of, and which of them ask for work. Soft: the log knows it less exactly, so
// that calls without work write nothing. After a restart everybody counts as just heard of, and has a rank
// again from its next claim on.
#pragma once

#include <algorithm>
#include <unordered_map>

#include "base/time.h"
#include "core/stream/streams.h"

namespace baton::core {

class Presence {
 public:
  void begin(Instant now) { began_ = now; }
  void heard(const streams::Instance& instance, Instant now) { seen_[instance.number].heard = now; }
  void asked_for_work(const streams::Instance& instance) { seen_[instance.number].claims = true; }
  // It was told what it holds, by claims up to this one.
  void resumed(const streams::Instance& instance, Lsn last) { seen_[instance.number].resumed = last; }
  bool has_resumed(const streams::Instance& instance, Lsn claim) const {
    const auto found = seen_.find(instance.number);
    return found != seen_.end() && found->second.resumed >= claim;
  }
  void forget_silent_since(Instant then) {
    std::erase_if(seen_, [&](const auto& item) { return item.second.heard < then; });
  }
  Instant last_heard(const streams::Instance& instance) const {
    const auto found = seen_.find(instance.number);
    return std::max({instance.heard, began_, found == seen_.end() ? Instant{} : found->second.heard});
  }
  // Whether streams are offered to it: one that only stores would keep those of its share waiting.
  bool has_rank(const streams::Instance& instance, Instant silent_before) const {
    const auto found = seen_.find(instance.number);
    return found != seen_.end() && found->second.claims && last_heard(instance) >= silent_before;
  }

 private:
  struct Seen {
    Instant heard;
    bool claims = false;
    Lsn resumed = 0;
  };
  Instant began_;
  std::unordered_map<streams::Number, Seen> seen_;
};

}  // namespace baton::core
