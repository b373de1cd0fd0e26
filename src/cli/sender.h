// Hands in tasks, many at a time and without waiting for answers: neighbours that differ in nothing but
// payload and key go as one request.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>

#include "client/client.h"

namespace baton::cli {

class Sender {
 public:
  // The outcome of each task, under the number it was given; on the client's thread, one at a time.
  using Outcome = std::function<void(std::size_t number, const Result<client::Submitted>&)>;

  Sender(client::Client& client, Outcome outcome) : client_(client), outcome_(std::move(outcome)) {}
  ~Sender() { finish(); }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  void add(std::size_t number, client::Submit task);
  void flush();   // what was gathered goes out
  void finish();  // and every answer is there

 private:
  bool fits(std::size_t number, const client::Submit& task) const;
  void answered(std::size_t first, std::size_t count,
                const Result<std::vector<Result<client::Submitted>>>& outcomes);

  client::Client& client_;
  const Outcome outcome_;
  client::SubmitMany batch_;
  std::size_t batch_first_ = 0;  // the number of its first task; the others follow without a gap
  std::size_t batch_bytes_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t under_way_ = 0;
};

}  // namespace baton::cli
