// Signals as something that can be waited for. One object at a time in a process. A second one that asks for
// the end is not waited for: it ends the process at once, whatever that is doing.
#pragma once

#include <signal.h>

#include <span>
#include <utility>
#include <vector>

#include "base/descriptor.h"

namespace baton::server {

class Signals {
 public:
  explicit Signals(std::span<const int> numbers);
  ~Signals();  // as it was before
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return read_.number(); }
  int next();  // 0: there is none

 private:
  Descriptor read_;
  Descriptor write_;
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace baton::server
