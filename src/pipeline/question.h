// A question to a client, of which the one who asks may grow tired. The answer then finds nobody.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "client/client.h"

namespace baton::pipeline {

template <class T>
class Question {
 public:
  client::Callback<T> answer() {
    return [state = state_](Result<T> result) {
      const std::lock_guard lock(state->mutex);
      state->result = std::move(result);
      state->answered.notify_all();
    };
  }
  Result<T> wait(const std::stop_token& stop) {
    std::unique_lock lock(state_->mutex);
    state_->answered.wait(lock, stop, [this] { return state_->result.has_value(); });
    if (state_->result) return std::move(*state_->result);
    return failure(Errc::closed, "stopped");
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable_any answered;
    std::optional<Result<T>> result;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace baton::pipeline
