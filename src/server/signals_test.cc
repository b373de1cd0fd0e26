#include "server/signals.h"

#include <gtest/gtest.h>

#include <csignal>

namespace baton::server {
namespace {

constexpr int kNumbers[] = {SIGINT, SIGTERM, SIGHUP};

// X6: whoever should have listened may be stuck.
TEST(ASecondSignal, EndsTheProcessThoughNobodyListens) {
  const auto hears = [](int first, int second) {
    const Signals signals(kNumbers);
    ::raise(SIGHUP);
    ::raise(first);
    ::raise(SIGHUP);
    ::raise(second);
  };
  EXPECT_EXIT(hears(SIGTERM, SIGTERM), testing::ExitedWithCode(130), "");
  EXPECT_EXIT(hears(SIGINT, SIGTERM), testing::ExitedWithCode(130), "");
}

TEST(ASignal, WaitsUntilItIsAskedFor) {
  Signals signals(kNumbers);
  ::raise(SIGHUP);
  ::raise(SIGTERM);
  EXPECT_EQ(signals.next(), SIGHUP);
  EXPECT_EQ(signals.next(), SIGTERM);
  EXPECT_EQ(signals.next(), 0);
}

}  // namespace
}  // namespace baton::server
