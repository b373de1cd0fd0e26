// Hands in tasks, many at a time and without waiting for answers: neighbours that differ in nothing but
// payload and key go as one request.
//
// What the coordinator has no room for (EXHAUSTED), or is about to stop for (CLOSED), is handed in again
// after as long as it says, before anything new; and while it refuses, one request at a time. That goes on
// for as long as it takes some of it now and then.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "client/client.h"

namespace baton::cli {

// What has become of the tasks so far, for whoever ends us now. Those that are refused for good are no longer
// counted.
struct Standing {
  std::atomic<std::uint64_t> taken = 0;
  std::atomic<std::uint64_t> unknown = 0;  // under way, or no answer will come
  std::atomic<std::uint64_t> unsent = 0;   // or refused for now
};

// It never got there.
inline bool is_unsent(Errc code) { return code == Errc::unavailable || code == Errc::deadline_exceeded; }

class Sender {
 public:
  // All on the client's thread, one at a time.
  struct Tells {
    // The outcome of each task, under the number it was given.
    std::function<void(std::size_t number, const Result<client::Submitted>&)> outcome;
    // Those of a request were told; the next ones may be long in coming.
    std::function<void()> told;
    // Some were refused, and will be handed in again.
    std::function<void(const Error&)> held_back;
  };

  // Gives up when nothing was taken for as long as `patience`.
  Sender(client::Client& client, Duration patience, Tells tells);
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  void add(std::size_t number, client::Submit task);
  void flush();   // what was gathered goes out
  void finish();  // and every answer is there
  const Standing& standing() const { return standing_; }

 private:
  struct Batch {
    client::SubmitMany tasks;
    std::vector<std::size_t> numbers;
  };
  using BatchPtr = std::shared_ptr<const Batch>;  // shared, for a callback can be copied
  using Outcomes = Result<std::vector<Result<client::Submitted>>>;

  bool fits(std::size_t number, const client::Submit& task) const;
  void send(const BatchPtr& batch);  // one more is under way already
  void answered(const Batch& batch, const Outcomes& outcomes);
  std::deque<BatchPtr> put_off(Batch refused, const Error& why);  // what is given up
  void send_again(const std::stop_token& stop);

  client::Client& client_;
  const Duration patience_;
  const Tells tells_;
  Batch batch_;
  std::size_t batch_bytes_ = 0;
  Standing standing_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::size_t under_way_ = 0;
  std::size_t window_;  // so many may be: one after a refusal, and one more after each that was taken
  std::deque<BatchPtr> refused_;               // to be handed in again,
  std::int64_t again_at_ = 0;                  // not before this
  std::optional<std::int64_t> refused_since_;  // and nothing was taken since
  bool has_given_up_ = false;
  std::jthread again_;
};

}  // namespace baton::cli
