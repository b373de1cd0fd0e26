// What handlers and sinks have seen, and a way to wait for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "stream/handler.h"
#include "tests/stream/people.h"

namespace baton::stream {

class Seen {
 public:
  void add(const Work& work) {
    const std::scoped_lock lock(mutex_);
    order_[work.stream.value_or(StreamId{}).value].push_back(work.sequence);
    ++count_;
    changed_.notify_all();
  }
  void wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }
  // False: not within this time.
  bool comes_to(std::size_t count, std::chrono::milliseconds within) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, within, [&] { return count_ >= count; });
  }
  std::map<Uuid, std::vector<std::int64_t>> order() {
    const std::scoped_lock lock(mutex_);
    return order_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Uuid, std::vector<std::int64_t>> order_;
  std::size_t count_ = 0;
};

class Broker final : public Sink {
 public:
  Status publish(const Work& work, std::stop_token) override {
    published.add(work);
    return {};
  }
  Seen published;
};

}  // namespace baton::stream
