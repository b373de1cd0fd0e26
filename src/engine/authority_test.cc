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

// X5: those who only ask do not keep those who hold leases from keeping them.
TEST(ATurn, LetsNoRequestWaitForQuestions) {
  const TemporaryDirectory data;
  auto authority = Authority::open(data.path(), {}, [] {}).value();
  constexpr std::size_t kQuestions = 1000;
  std::size_t seen = 0, told = 0;
  const auto look = [&](Engine&) { return ++seen, true; };
  for (std::size_t count = 0; count < kQuestions; ++count) authority->run(look, [&] { ++told; });

  bool is_answered = false;
  authority->begin_turn(false);
  EXPECT_FALSE(authority->is_behind());
  EXPECT_GT(seen, 0u);
  EXPECT_LE(seen, 32u);
  core::Request request = submission();
  authority->ask_here(request, [&](Answer&&) { is_answered = true; });
  EXPECT_NE(authority->decided_last(), nullptr);
  EXPECT_TRUE(authority->end_turn());
  EXPECT_TRUE(is_answered);

  authority->stop();
  do {
    authority->begin_turn(false);
  } while (authority->end_turn());
  EXPECT_EQ(seen, kQuestions);
  EXPECT_EQ(told, kQuestions);
  EXPECT_TRUE(authority->close());
}

// D21: wherever it stands in line.
TEST(AQuestion, SeesAllThatWasAskedBeforeIt) {
  const TemporaryDirectory data;
  std::counting_semaphore<> woken(0);
  auto authority = Authority::open(data.path(), {}, [&] { woken.release(); }).value();
  constexpr std::size_t kMoreThanTwoTurnsTake = 10'000;
  constexpr std::size_t kEach = 100;
  std::size_t seen = 0;
  for (std::size_t count = 1; count <= kMoreThanTwoTurnsTake; ++count) {
    authority->ask(submission(), [](Answer&&) {});
    if (count % kEach != 0) continue;
    const auto look = [&, count](Engine& engine) {
      EXPECT_GE(engine.state().tasks.used(), count);
      return true;
    };
    authority->run(look, [&] { ++seen; });
  }
  while (seen < kMoreThanTwoTurnsTake / kEach) {
    (void)woken.try_acquire_for(std::chrono::milliseconds(authority->wait().ms));
    authority->begin_turn(false);
    EXPECT_TRUE(authority->end_turn());
  }
}

}  // namespace
}  // namespace baton::engine
