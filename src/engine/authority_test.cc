#include "engine/authority.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <semaphore>
#include <vector>

#include "tests/temporary_directory.h"

namespace baton::engine {
namespace {

core::Request submission() { return core::SubmitTask{.ns = "n", .queue = "q", .payload = core::Blob("x")}; }

// X5: however much waits in the inbox, whoever has a connection of his own is read in every turn.
TEST(ATurn, IsLongByWhatIsAskedInItAndNotByWhatWaitedForIt) {
  const TemporaryDirectory data;
  auto authority = Authority::open(data.path(), {}, [] {}).value();
  std::size_t answered = 0;
  const auto done = [&](Answer&&) { ++answered; };
  for (int count = 0; count < 600; ++count) authority->ask(submission(), done);

  authority->begin_turn(false);
  EXPECT_FALSE(authority->is_turn_long());
  std::size_t here = 0;
  for (; !authority->is_turn_long(); ++here) {
    core::Request request = submission();
    authority->ask_here(request, done);
  }
  EXPECT_EQ(here, 512u);
  EXPECT_TRUE(authority->end_turn());

  authority->stop();
  do {
    authority->begin_turn(false);
  } while (authority->end_turn());
  EXPECT_EQ(answered, 600u + 512u);
  EXPECT_TRUE(authority->close());
}

// E5, S9: what one connection hands in is recorded in that order, however much waits for room in the log.
TEST(ATurn, DecidesNothingBeforeWhatWasAskedEarlier) {
  const TemporaryDirectory data;
  std::counting_semaphore<> woken(0);
  auto authority = Authority::open(data.path(), {}, [&] { woken.release(); }).value();
  constexpr std::size_t kMoreThanTwoTurnsTake = 10'000;
  std::vector<core::Lsn> tasks;  // in the order in which they were asked for
  std::size_t answered = 0;
  const auto submit = [&] {
    core::Request request = submission();
    authority->ask_here(request, [&, at = tasks.size()](Answer&& answer) {
      tasks[at] = std::get<core::Submitted>(*answer.reply).task.lsn;
      ++answered;
    });
    tasks.push_back(0);
  };
  authority->begin_turn(false);
  while (tasks.size() < kMoreThanTwoTurnsTake) submit();
  EXPECT_TRUE(authority->end_turn());
  while (answered < kMoreThanTwoTurnsTake) {
    (void)woken.try_acquire_for(std::chrono::milliseconds(authority->wait().ms));
    authority->begin_turn(false);
    submit();
    EXPECT_TRUE(authority->end_turn());
  }

  authority->stop();
  do {
    authority->begin_turn(false);
  } while (authority->end_turn());
  EXPECT_EQ(answered, tasks.size());
  EXPECT_TRUE(std::ranges::is_sorted(tasks));
  EXPECT_TRUE(authority->close());
}

}  // namespace
}  // namespace baton::engine
