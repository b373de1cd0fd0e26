#include "cli/sender.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/call.h"

namespace baton::cli {
namespace {

constexpr std::size_t kBatchTasksMax = 512;
constexpr std::size_t kBatchBytesMax = std::size_t{512} << 10;
constexpr std::size_t kUnderWayMax = 64;  // requests: enough that none waits for another

// A namespace at its rate has room for a few bytes after a few milliseconds, and a whole request would be
// sent for one task of it. After this long more of it is taken.
constexpr Duration kPauseMin = milliseconds(250);

// Worth saying again later. What may have been taken is, under the same key, if there was only no room when
// it was repeated.
bool is_passing(const Error& error, bool has_key) {
  if (error.code == Errc::outcome_unknown) return has_key && error.retry_after > Duration{};
  return error.code == Errc::exhausted || error.code == Errc::closed;
}

Result<client::Submitted> outcome_at(std::size_t at,
                                     const Result<std::vector<Result<client::Submitted>>>& outcomes) {
  if (!outcomes) return std::unexpected(outcomes.error());
  if (at < outcomes->size()) return (*outcomes)[at];
  return failure(Errc::unsupported_version, "the coordinator left this one out");
}

// One that was under way; `is_again`: and is handed in again.
void count(Standing& standing, const Result<client::Submitted>& outcome, bool is_again) {
  if (!is_again && !outcome && outcome.error().code == Errc::outcome_unknown) return;
  if (outcome)
    ++standing.taken;
  else if (is_again || is_unsent(outcome.error().code))
    ++standing.unsent;
  --standing.unknown;
}

void add_task(client::SubmitMany& to, const client::SubmitMany& from, std::size_t at) {
  to.payloads.push_back(from.payloads[at]);
  if (!from.keys.empty()) to.keys.push_back(from.keys[at]);
}

}  // namespace

Sender::Sender(client::Client& client, Duration patience, Tells tells)
    : client_(client),
      patience_(patience),
      tells_(std::move(tells)),
      window_(kUnderWayMax),
      again_([this](const std::stop_token& stop) { send_again(stop); }) {}

Sender::~Sender() { finish(); }

bool Sender::fits(std::size_t number, const client::Submit& task) const {
  const client::SubmitMany& tasks = batch_.tasks;
  return number == batch_.numbers.back() + 1 && tasks.payloads.size() < kBatchTasksMax &&
         batch_bytes_ + task.payload.size() <= kBatchBytesMax && tasks.queue == task.queue &&
         tasks.keys.empty() == task.key.empty() && tasks.options == task.options;
}

void Sender::add(std::size_t number, client::Submit task) {
  if (!batch_.numbers.empty() && !fits(number, task)) flush();
  if (batch_.numbers.empty()) {
    batch_.tasks.queue = std::move(task.queue);
    batch_.tasks.options = std::move(task.options);
  }
  batch_bytes_ += task.payload.size();
  ++standing_.unsent;
  batch_.numbers.push_back(number);
  batch_.tasks.payloads.push_back(std::move(task.payload));
  if (!task.key.empty()) batch_.tasks.keys.push_back(std::move(task.key));
}

void Sender::flush() {
  if (batch_.numbers.empty()) return;
  const auto batch = std::make_shared<const Batch>(std::exchange(batch_, {}));
  batch_bytes_ = 0;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return refused_.empty() && under_way_ < window_; });
    ++under_way_;
  }
  send(batch);
}

void Sender::send(const BatchPtr& batch) {
  standing_.unknown += batch->numbers.size();
  standing_.unsent -= batch->numbers.size();
  client_.submit_many(batch->tasks, [this, batch](const Outcomes& outcomes) { answered(*batch, outcomes); });
}

void Sender::answered(const Batch& batch, const Outcomes& outcomes) {
  Batch refused{.tasks = {.queue = batch.tasks.queue, .options = batch.tasks.options}};
  Error why{};
  bool was_taken = false;
  for (std::size_t at = 0; at < batch.numbers.size(); ++at) {
    const auto outcome = outcome_at(at, outcomes);
    was_taken |= outcome.has_value();
    const bool is_again = !outcome && is_passing(outcome.error(), !batch.tasks.keys.empty());
    count(standing_, outcome, is_again);
    if (!is_again) {
      tells_.outcome(batch.numbers[at], outcome);
      continue;
    }
    why = outcome.error();
    add_task(refused.tasks, batch.tasks, at);
    refused.numbers.push_back(batch.numbers[at]);
  }
  tells_.told();
  const bool is_held_back = !refused.numbers.empty();
  std::deque<BatchPtr> given_up;
  {
    const std::lock_guard lock(mutex_);
    if (was_taken) refused_since_.reset();
    window_ = is_held_back ? 1 : std::min(window_ + 1, kUnderWayMax);
    if (is_held_back) given_up = put_off(std::move(refused), why);
  }
  if (is_held_back && given_up.empty()) tells_.held_back(why);
  for (const BatchPtr& one : given_up) {
    for (const std::size_t number : one->numbers) tells_.outcome(number, std::unexpected(why));
  }
  const std::lock_guard lock(mutex_);
  --under_way_;
  changed_.notify_all();  // under the lock: whoever waits may take all this away
}

std::deque<Sender::BatchPtr> Sender::put_off(Batch refused, const Error& why) {
  const std::int64_t now = client::now_ms();
  if (!refused_since_) refused_since_ = now;
  has_given_up_ |= now - *refused_since_ >= patience_.ms;
  again_at_ = now + std::max(why.retry_after, kPauseMin).ms;
  refused_.push_back(std::make_shared<const Batch>(std::move(refused)));
  return has_given_up_ ? std::exchange(refused_, {}) : std::deque<BatchPtr>();
}

// On a thread of its own: whoever adds tasks may be waiting for the next one.
void Sender::send_again(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !refused_.empty() && under_way_ < window_; })) {
    const std::int64_t early_ms = again_at_ - client::now_ms();
    if (early_ms > 0) {
      changed_.wait_for(lock, stop, std::chrono::milliseconds(early_ms), [&] { return refused_.empty(); });
      continue;
    }
    const BatchPtr batch = std::move(refused_.front());
    refused_.pop_front();
    ++under_way_;
    lock.unlock();
    send(batch);
    lock.lock();
  }
}

void Sender::finish() {
  flush();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return under_way_ == 0 && refused_.empty(); });
}

}  // namespace baton::cli
