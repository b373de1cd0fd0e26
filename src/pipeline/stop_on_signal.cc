#include "pipeline/stop_on_signal.h"

#include <unistd.h>

#include <utility>

#include "process/descendants.h"

namespace baton::pipeline {

StopOnSignal::StopOnSignal(std::function<void()> last_words) : last_words_(std::move(last_words)) {
  ::sigemptyset(&set_);
  for (const int number : {SIGINT, SIGTERM}) ::sigaddset(&set_, number);
  struct sigaction hangup{};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) ::sigaddset(&set_, SIGHUP);  // as nohup has it
  ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  ::signal(SIGPIPE, SIG_IGN);
  thread_ = std::thread([this] { wait(); });
}

StopOnSignal::~StopOnSignal() {
  is_ending_ = true;
  ::pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
  if (teller_.joinable()) teller_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopOnSignal::wait() {
  int number = 0;
  while (::sigwait(&set_, &number) == 0 && !is_ending_) {
    if (teller_.joinable()) {
      if (last_words_) last_words_();
      process::kill_descendants();
      ::_exit(128 + number);
    }
    teller_ = std::thread([this] { source_.request_stop(); });
  }
}

}  // namespace baton::pipeline
