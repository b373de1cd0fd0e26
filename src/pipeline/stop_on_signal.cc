#include "pipeline/stop_on_signal.h"

#include <unistd.h>

#include "process/descendants.h"

namespace baton::pipeline {

StopOnSignal::StopOnSignal() {
  ::sigemptyset(&set_);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) ::sigaddset(&set_, number);
  ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  thread_ = std::thread([this] { wait(); });
}

StopOnSignal::~StopOnSignal() {
  ::pthread_kill(thread_.native_handle(), SIGUSR1);
  thread_.join();
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopOnSignal::wait() {
  int number = 0;
  while (::sigwait(&set_, &number) == 0 && number != SIGUSR1) {
    if (source_.stop_requested()) {
      process::kill_descendants();
      ::_exit(128 + number);
    }
    source_.request_stop();
  }
}

}  // namespace baton::pipeline
