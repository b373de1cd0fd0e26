// Calls from Python into C++. They run without the interpreter's lock, so that other threads go on, and
// whoever waits for one looks up now and then for signals, so that Ctrl-C works.
//
//   Python's thread   run(work) ──────── waits, hears signals ────────► value, or an exception
//   another one             '──► work ──► Answer ─────────────────────'
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/result.h"
#include "base/time.h"

namespace baton::python {

namespace py = pybind11;

inline constexpr std::chrono::milliseconds kSignalsEvery{50};
inline constexpr std::chrono::milliseconds kGrace{500};  // for a call that was interrupted to end by itself

// As baton.Error, with the code's word.
[[noreturn]] void raise(const Error& error);

template <class T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

Duration duration_of(double seconds);

// What a call comes to. Shared with whoever gives it, which may be after nobody waits any more.
template <class T>
class Answer {
 public:
  void give(Result<T> result) {
    const std::lock_guard lock(mutex_);
    result_.emplace(std::move(result));
    given_.notify_all();
  }
  // An exception takes the place of the result: memory ran out.
  void give_up(std::exception_ptr raised) {
    const std::lock_guard lock(mutex_);
    raised_ = std::move(raised);
    given_.notify_all();
  }
  bool is_given_within(std::chrono::milliseconds at_most) {
    std::unique_lock lock(mutex_);
    return given_.wait_for(lock, at_most, [&] { return result_.has_value() || raised_ != nullptr; });
  }
  // If that is what was given.
  std::optional<Error> trouble() {
    const std::lock_guard lock(mutex_);
    if (!result_ || *result_) return {};
    return result_->error();
  }
  Result<T> take() {
    const std::lock_guard lock(mutex_);
    if (raised_) std::rethrow_exception(raised_);
    return *std::move(result_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::optional<Result<T>> result_;
  std::exception_ptr raised_;
};

// Waits until `is_over(at_most)` says so. After a signal whose handler raised, `stop` is called, and the
// exception goes on, whether it is over by then or not.
template <class IsOver, class Stop>
void wait_with_signals(IsOver is_over, Stop stop) {
  const auto unlocked = [&](auto action) {
    const py::gil_scoped_release unlock;
    return action();
  };
  while (!unlocked([&] { return is_over(kSignalsEvery); })) {
    if (PyErr_CheckSignals() == 0) continue;
    py::error_already_set interrupted;
    unlocked([&] { return stop(), is_over(kGrace); });
    throw interrupted;
  }
}

// For calls that come back by themselves: `begin` starts one and is given what to call at its end.
template <class T, class Begin>
T await(Begin begin) {
  auto answer = std::make_shared<Answer<T>>();
  {
    const py::gil_scoped_release unlock;
    begin([answer](Result<T> result) { answer->give(std::move(result)); });
  }
  wait_with_signals([&](auto at_most) { return answer->is_given_within(at_most); }, [] {});
  return value_or_raise(answer->take());
}

// For calls that block: `work` has a thread to itself. `kept` is what it uses of Python's memory; if it does
// not end although it was stopped, it goes on alone, and that memory is never let go.
template <class Work>
auto run(py::object kept, Work work) {
  using T = typename std::invoke_result_t<Work, std::stop_token>::value_type;
  auto answer = std::make_shared<Answer<T>>();
  std::stop_source stop;
  std::thread thread(
      [answer, work = std::make_unique<Work>(std::move(work)), stop = stop.get_token()]() mutable {
        try {
          Result<T> result = (*work)(stop);
          work.reset();  // lets go of what it holds, before the next call can begin
          answer->give(std::move(result));
        } catch (...) {
          answer->give_up(std::current_exception());
        }
      });
  try {
    wait_with_signals([&](auto at_most) { return answer->is_given_within(at_most); },
                      [&] { stop.request_stop(); });
  } catch (...) {
    if (answer->is_given_within({})) {
      thread.join();
      // It may have ended before it was stopped, and with the error of a save of which nobody hears again.
      if (const auto trouble = answer->trouble(); trouble && trouble->code != Errc::closed)
        std::fprintf(stderr, "baton: interrupted: %s\n", trouble->message.c_str());
    } else {
      thread.detach();
      (void)kept.release();
    }
    throw;
  }
  thread.join();
  return value_or_raise(answer->take());
}

}  // namespace baton::python
