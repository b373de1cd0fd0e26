#include "server/waiters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/operation.h"

namespace baton::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Worker final : public Operation {
 public:
  void begin(Desk&) override {}
  void write(ReplyWriter&) override {}
};

class InLine : public testing::Test {
 protected:
  void wait(Worker& worker, std::string_view capabilities = {}) {
    waiters_.wait_for_task(worker, "n", {"q"}, Instant{1'000'000}, capabilities);
  }
  std::vector<const Operation*> woken(const core::Prospect& prospect) {
    std::vector<const Operation*> operations;
    for (const auto& woken : waiters_.take(Instant{1}, [&](auto, auto) { return prospect; }))
      operations.push_back(woken.operation);
    return operations;
  }
  Waiters waiters_;
};

// T17: a task that only few can do does not have all the others try in turn.
TEST_F(InLine, WhoeverCanDoATaskIsWokenForIt) {
  Worker plain, other, able;
  wait(plain), wait(other), wait(able, "gpu");
  const core::Prospect for_few{.needs = {"gpu"}};
  waiters_.task_came("n", "q");
  EXPECT_THAT(woken(for_few), ElementsAre(&able));
  EXPECT_THAT(woken(for_few), IsEmpty()) << "it is there still, and nobody can do it";
  waiters_.task_came("n", "q");
  EXPECT_THAT(woken({.needs = {"gpu", ""}}), ElementsAre(&plain));
}

// T17: of all that is put off, the first time counts.
TEST_F(InLine, WhatIsPutOffIsLookedForWhenItIsTime) {
  Worker worker;
  wait(worker);
  for (const std::int64_t at : {500, 300, 400}) {
    waiters_.task_came("n", "q");
    EXPECT_THAT(woken({.next = Instant{at}}), IsEmpty());
    EXPECT_EQ(waiters_.next(), Instant{at});
  }
  EXPECT_TRUE(waiters_.forget(worker));
  wait(worker);
  EXPECT_EQ(waiters_.next(), Instant{1'000'000}) << "nothing of an older line is left";
}

}  // namespace
}  // namespace baton::server
