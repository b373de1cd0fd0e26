#include "pipeline/persistently.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace baton::pipeline {
namespace {

// As a worker may have waited for hours when the folder or the Redis that it asks is away for a moment.
TEST(ACallThatWaitedForLong, IsMadeAgainForAsLongAsOneThatFailedAtOnce) {  // P6
  constexpr Duration kAtMost = milliseconds(500);
  int calls = 0, missed = 0;
  const auto call = [&]() -> Result<int> {
    if (++calls > 1) return calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(kAtMost.ms + 10));
    return failure(Errc::unavailable, "away");
  };
  const auto answer = persistently(call, kAtMost, {}, [&](const Error&) { ++missed; });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, 2);
  EXPECT_EQ(missed, 1);
}

TEST(ACallThatFails, IsMadeAgainForAWhileAndNotForEver) {  // P6
  int calls = 0;
  const auto call = [&]() -> Result<int> { return ++calls, failure(Errc::unavailable, "away"); };
  EXPECT_FALSE(persistently(call, milliseconds(150), {}, [](const Error&) {}));
  EXPECT_GT(calls, 1);
}

}  // namespace
}  // namespace baton::pipeline
