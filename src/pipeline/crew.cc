#include "pipeline/crew.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace baton::pipeline {
namespace {

using Clock = std::chrono::steady_clock;

Duration since(Clock::time_point then) {
  return {std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - then).count()};
}

}  // namespace

struct Crew::State {
  explicit State(Done what) : done(std::move(what)) {}

  const Done done;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<ModuleOrder> orders;
  std::size_t threads = 0;  // that are not left alone
  bool is_over = false;
};

Crew::Crew(std::shared_ptr<const Site> site, std::size_t threads, Done done)
    : watch_(std::move(site)), state_(std::make_shared<State>(std::move(done))) {
  for (std::size_t i = 0; i < threads; ++i) hire();
}

Crew::~Crew() {
  watch_.stop(true);
  std::unique_lock lock(state_->mutex);
  state_->is_over = true;
  state_->changed.notify_all();
  state_->changed.wait(lock, [this] { return state_->threads == 0; });
}

void Crew::begin(ModuleOrder order) {
  const std::lock_guard lock(state_->mutex);
  state_->orders.push_back(std::move(order));
  state_->changed.notify_one();
}

void Crew::hire() {
  {
    const std::lock_guard lock(state_->mutex);
    ++state_->threads;
  }
  std::thread([state = state_, this] {
    for (;;) {
      ModuleOrder order;
      {
        std::unique_lock lock(state->mutex);
        state->changed.wait(lock, [&] { return state->is_over || !state->orders.empty(); });
        if (state->orders.empty()) break;
        order = std::move(state->orders.front());
        state->orders.pop_front();
      }
      const GraphNode& node = *order.node;
      const auto began = Clock::now();
      // By value: this thread may have gone by then, or be lost for good. Another takes its place.
      auto result = watch_.run(std::move(order), [this, state, &node, began](ModuleResult instead) {
        hire();
        const std::lock_guard lock(state->mutex);
        state->done(node, std::move(instead), since(began));
        if (--state->threads == 0) state->changed.notify_all();
      });
      if (!result) return;
      state->done(node, std::move(*result), since(began));
    }
    const std::lock_guard lock(state->mutex);
    if (--state->threads == 0) state->changed.notify_all();
  }).detach();
}

}  // namespace baton::pipeline
