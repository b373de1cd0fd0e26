#include "cli/sender.h"

#include <utility>

namespace baton::cli {
namespace {

constexpr std::size_t kBatchTasksMax = 512;
constexpr std::size_t kBatchBytesMax = std::size_t{512} << 10;
constexpr std::size_t kUnderWayMax = 64;  // requests: enough that none waits for another

}  // namespace

bool Sender::fits(std::size_t number, const client::Submit& task) const {
  return number == batch_first_ + batch_.payloads.size() && batch_.payloads.size() < kBatchTasksMax &&
         batch_bytes_ + task.payload.size() <= kBatchBytesMax && batch_.queue == task.queue &&
         batch_.keys.empty() == task.key.empty() && batch_.options == task.options;
}

void Sender::add(std::size_t number, client::Submit task) {
  if (!batch_.payloads.empty() && !fits(number, task)) flush();
  if (batch_.payloads.empty()) {
    batch_.queue = std::move(task.queue);
    batch_.options = std::move(task.options);
    batch_first_ = number;
  }
  batch_bytes_ += task.payload.size();
  batch_.payloads.push_back(std::move(task.payload));
  if (!task.key.empty()) batch_.keys.push_back(std::move(task.key));
}

void Sender::flush() {
  if (batch_.payloads.empty()) return;
  const client::SubmitMany batch = std::exchange(batch_, {});
  batch_bytes_ = 0;
  const std::size_t count = batch.payloads.size();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return under_way_ < kUnderWayMax; });
    ++under_way_;
  }
  client_.submit_many(
      batch, [this, first = batch_first_, count](const auto& outcomes) { answered(first, count, outcomes); });
}

void Sender::answered(std::size_t first, std::size_t count,
                      const Result<std::vector<Result<client::Submitted>>>& outcomes) {
  for (std::size_t at = 0; at < count; ++at) {
    if (!outcomes) {
      outcome_(first + at, std::unexpected(outcomes.error()));
    } else if (at < outcomes->size()) {
      outcome_(first + at, (*outcomes)[at]);
    } else {
      outcome_(first + at, failure(Errc::unsupported_version, "the coordinator left this one out"));
    }
  }
  const std::lock_guard lock(mutex_);
  --under_way_;
  changed_.notify_all();  // under the lock: whoever waits may take all this away
}

void Sender::finish() {
  flush();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return under_way_ == 0; });
}

}  // namespace baton::cli
