// A line of one's own, driven by whoever asks: no other thread has to wake up for a call, and for its reply
// another time. One call at a time; a second one waits until the first is answered.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/line.h"

namespace baton::client {

class DirectLine {
 public:
  explicit DirectLine(const ClientOptions& options);  // that make no sense fail every call

  // As Client::ask_and_wait.
  Result<wire::RespValue> ask_and_wait(const std::vector<std::string>& words, Duration wait,
                                       Duration deadline);

 private:
  std::mutex mutex_;
  const Result<LineOptions> options_;
  const Line::Tells tells_;
  std::optional<Line> line_;  // none if the options make no sense
};

}  // namespace baton::client
