#include "checkpoint/io_engine.h"

#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"

namespace baton::checkpoint {
namespace {

constexpr unsigned kThreads = 2;  // enough to keep a disk busy while the next block is prepared

class ThreadEngine final : public IoEngine {
 public:
  ThreadEngine() {
    waiting_.reserve(kTransfersMax);
    done_.reserve(kTransfersMax);
    try {
      for (unsigned i = 0; i < kThreads; ++i)
        threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
    } catch (const std::system_error&) {
      // There are no more to be had, so it goes on with fewer.
    }
  }

  void submit(const Transfer& transfer) override {
    if (threads_.empty()) {
      done_.push_back({transfer.tag, carry_out(transfer)});
      return;
    }
    const std::lock_guard lock(mutex_);
    waiting_.push_back(transfer);
    changed_.notify_all();
  }

  Completion wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !done_.empty(); });
    const Completion first = done_.front();
    done_.erase(done_.begin());
    return first;
  }

 private:
  void serve(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !waiting_.empty(); })) {
      const Transfer transfer = waiting_.front();
      waiting_.erase(waiting_.begin());
      lock.unlock();
      const Completion completion{transfer.tag, carry_out(transfer)};
      lock.lock();
      done_.push_back(completion);
      changed_.notify_all();
    }
  }

  static std::int64_t carry_out(const Transfer& transfer) {
    const auto offset = static_cast<off_t>(transfer.offset);
    for (;;) {
      const ssize_t moved = transfer.direction == Transfer::Direction::write
                                ? ::pwrite(transfer.descriptor, transfer.memory, transfer.bytes, offset)
                                : ::pread(transfer.descriptor, transfer.memory, transfer.bytes, offset);
      if (moved >= 0) return moved;
      if (errno != EINTR) return -errno;
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // With room for all from the start: what a thread throws would end the process.
  std::vector<Transfer> waiting_;
  std::vector<Completion> done_;
  std::vector<std::jthread> threads_;  // last: they end before the rest goes
};

}  // namespace

std::string_view describe(IoMode mode) {
  switch (mode) {
    case IoMode::direct_ring: return "O_DIRECT with io_uring";
    case IoMode::direct: return "O_DIRECT with threads";
    case IoMode::buffered: return "through the page cache";
  }
  BATON_CHECK(false && "unknown mode");
}

std::unique_ptr<IoEngine> thread_engine() { return std::make_unique<ThreadEngine>(); }

std::unique_ptr<IoEngine> engine_for(IoMode mode) {
  if (mode == IoMode::direct_ring) {
    if (auto ring = ring_engine()) return ring;
  }
  return thread_engine();
}

}  // namespace baton::checkpoint
