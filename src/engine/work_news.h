// Wakes those who wait for work of streams: something was recorded that brought some.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>

#include "base/time.h"
#include "core/apply.h"
#include "core/event.h"
#include "core/state.h"

namespace baton::engine {

class WorkNews {
 public:
  // In the order of the log, each entry when it has been applied; told once what it saw is durable.
  void saw(const core::State& state, const core::Event& event, const core::Stamp& at);
  void durable(core::Lsn lsn);

  // From any thread.
  std::uint64_t count() const;
  // Until there is news after the first `known`. False: time is up, or it was stopped.
  bool wait(std::uint64_t known, Duration at_most, std::stop_token stop) const;

 private:
  core::Lsn newest_ = 0;  // that brought work; the loop's own
  core::Lsn untold_ = 0;  // the first of which nobody was told, or one before it; likewise
  mutable std::mutex mutex_;
  mutable std::condition_variable_any told_all_;
  std::uint64_t count_ = 0;
};

}  // namespace baton::engine
