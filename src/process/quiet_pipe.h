// While it lives, writing to whoever does not read any more is an error for this thread (EPIPE), and not the
// end of the process: a library cannot count on its program having asked for that.
#pragma once

#include <csignal>

namespace baton::process {

class QuietPipe {
 public:
  QuietPipe();
  ~QuietPipe();
  QuietPipe(const QuietPipe&) = delete;
  QuietPipe& operator=(const QuietPipe&) = delete;

 private:
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace baton::process
