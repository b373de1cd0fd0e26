#include "pipeline/stop_on_signal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace baton::pipeline {
namespace {

// One that writes to somebody who does not read, say.
void be_stopped_twice_while_nobody_comes_back() {
  ::alarm(60);  // rather than never
  const StopOnSignal stop;
  const std::stop_callback on_stop(stop.token(), [] {
    ::kill(::getpid(), SIGINT);
    for (;;) ::pause();
  });
  ::kill(::getpid(), SIGINT);
  for (;;) ::pause();
}

TEST(ASecondSignal, EndsTheProcessWhateverTheFirstOneBroughtAbout) {  // P7 P16
  EXPECT_EXIT(be_stopped_twice_while_nobody_comes_back(), ::testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace baton::pipeline
