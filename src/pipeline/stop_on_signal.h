// Ctrl-C, SIGTERM and a terminal that is closed as a stop token: modules are asked to stop, and what always
// runs still does. A second signal ends the process at once, and all that runs because of it.
//
// From then on SIGPIPE ends nothing: whoever reads no further what is said about work has not asked for its
// end, and processes would be left that nobody looks after.
#pragma once

#include <atomic>
#include <csignal>
#include <functional>
#include <stop_token>
#include <thread>

namespace baton::pipeline {

// To be made before other threads, which are not to get the signals.
class StopOnSignal {
 public:
  // `last_words` are said at a second signal, on a thread of ours, before the process ends.
  explicit StopOnSignal(std::function<void()> last_words = {});
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  std::stop_token token() const { return source_.get_token(); }

 private:
  void wait();

  const std::function<void()> last_words_;
  sigset_t set_{};
  sigset_t before_{};
  std::atomic<bool> is_ending_ = false;  // the signal that comes next is our own
  std::stop_source source_;
  std::thread teller_;  // for whoever is told may take his time, and the next signal is to be heard
  std::thread thread_;
};

}  // namespace baton::pipeline
