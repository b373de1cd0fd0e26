#include "engine/authority.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace baton::engine
