// Ranks at a coordinator that is killed, and ranks that are.
#include "checkpoint/server_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <latch>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/typed_collective.h"
#include "tests/proxy.h"
#include "tests/scripted_server.h"
#include "tests/served.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

ServerCollectiveOptions options_of(const std::string& address, Rank rank, Rank world_size) {
  return {.client = {.addresses = {address}}, .group = "job", .rank = rank, .world_size = world_size};
}

int uses(const Served& served, const std::string& verb) {
  const std::string metrics = "http://127.0.0.1:" + std::to_string(served.http_port()) + "/metrics";
  const std::string count = "baton_commands_total{verb=\"" + verb + "\"} ";
  for (const std::string& line : crash::run({.command = {"/usr/bin/env", "curl", "-s", metrics}}).lines)
    if (line.starts_with(count)) return std::stoi(line.substr(count.size()));
  return 0;
}

bool is_used(const Served& served, const std::string& verb) { return uses(served, verb) > 0; }

// C3
TEST(RanksAtACoordinator, GoOnWhereTheyWereWhenItIsStartedAgain) {
  constexpr Rank kRanks = 3;
  constexpr int kRounds = 60;
  Served served(BATON_PROGRAM);
  Proxy proxy(served.port());
  std::atomic<int> slowest[kRanks] = {};
  std::vector<std::jthread> ranks;
  for (Rank rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto joined = join_at_server(options_of(proxy.address(), rank, kRanks));
      ASSERT_TRUE(joined) << joined.error().message;
      for (int round = 0; round < kRounds; ++round) {
        const auto all = all_gather(**joined, {"round"}, round * 10 + static_cast<int>(rank));
        ASSERT_TRUE(all) << "round " << round << ": " << all.error().message;
        ASSERT_EQ(*all, (std::vector<int>{round * 10, round * 10 + 1, round * 10 + 2}));
        ++slowest[rank];
        slowest[rank].notify_all();
      }
    });
  }
  for (const int at : {10, 25, 40}) {
    for (int seen = slowest[1]; seen < at; seen = slowest[1]) slowest[1].wait(seen);
    if (at == 25) {
      EXPECT_TRUE(served.stop());  // as an upgrade does it
    } else {
      served.kill();
    }
    served.start();
    proxy.set_target(served.port());
    proxy.reset();
  }
}

// C3: also those that are not at an operation keep their places
TEST(RanksAtACoordinator, KeepTheirPlacesWhenItIsStartedAgain) {
  Served served(BATON_PROGRAM);
  Proxy proxy(served.port());
  const auto zero = join_at_server(options_of(proxy.address(), 0, 2));
  const auto one = join_at_server(options_of(proxy.address(), 1, 2));
  ASSERT_TRUE(zero && one);
  served.kill();
  served.start();
  proxy.set_target(served.port());
  proxy.reset();
  std::jthread other([&] { EXPECT_TRUE((*one)->barrier({"ready", seconds(60)})); });
  const Status passed = (*zero)->barrier({"ready", seconds(60)});
  EXPECT_TRUE(passed) << passed.error().message;
}

// C2, C3: what was said to a coordinator that does not know the group yet is said again
TEST(RanksAtACoordinator, AreStoppedWhileItIsStartedAgain) {
  Served served(BATON_PROGRAM);
  Proxy proxy(served.port());
  const auto zero = join_at_server(options_of(proxy.address(), 0, 2));
  const auto one = join_at_server(options_of(proxy.address(), 1, 2));
  ASSERT_TRUE(zero && one);
  std::stop_source source;
  Status passed;
  std::jthread waits([&] { passed = (*zero)->barrier({"ready", seconds(60), source.get_token()}); });
  ASSERT_TRUE(eventually([&] { return is_used(served, "group_meet"); }));
  served.kill();
  source.request_stop();
  served.start();
  proxy.set_target(served.port());
  proxy.reset();
  waits.join();
  ASSERT_FALSE(passed);
  EXPECT_EQ(passed.error().code, Errc::closed) << passed.error().message;
  EXPECT_THAT(passed.error().message, HasSubstr("rank 0 was stopped"));
}

// C2: with the process its connection ends, and nobody has to wait until its time to live is over
TEST(RanksAtACoordinator, HearOfAKilledOneSoon) {
  Served served(BATON_PROGRAM);
  int joined[2];
  ASSERT_EQ(pipe(joined), 0);
  const pid_t child = fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto one = join_at_server(options_of(served.address(), 1, 2));
    (void)!write(joined[1], "", 1);
    for (;;) pause();
  }
  char sign = 0;
  ASSERT_EQ(read(joined[0], &sign, 1), 1);
  ASSERT_TRUE(eventually([&] { return is_used(served, "group_watch"); })) << "it does not watch";
  const auto zero = join_at_server(options_of(served.address(), 0, 2));
  ASSERT_TRUE(zero);
  const auto began = std::chrono::steady_clock::now();
  ::kill(child, SIGKILL);
  const Status passed = (*zero)->barrier({"ready", hours(1)});
  const auto took = std::chrono::steady_clock::now() - began;
  waitpid(child, nullptr, 0);
  close(joined[0]), close(joined[1]);
  ASSERT_FALSE(passed);
  EXPECT_EQ(passed.error().code, Errc::unavailable);
  EXPECT_THAT(passed.error().message, AllOf(HasSubstr("rank 1"), HasSubstr("pid " + std::to_string(child))));
  EXPECT_LT(took, std::chrono::seconds(5)) << "its time to live is 10 s";
}

// C3: in whichever order they come
TEST(RanksAtACoordinator, OfAJobThatIsStartedAgainMeetThoughSomeWereNotThereBefore) {
  Served served(BATON_PROGRAM);
  ASSERT_TRUE(join_at_server(options_of(served.address(), 0, 2)));  // and leaves
  std::atomic<bool> is_in = false;
  std::jthread other([&] {
    const auto one = join_at_server(options_of(served.address(), 1, 2));
    ASSERT_TRUE(one);
    is_in = true;
    const Status passed = (*one)->barrier({"ready", seconds(60)});
    EXPECT_TRUE(passed) << passed.error().message;
  });
  ASSERT_TRUE(eventually([&] { return is_in || uses(served, "group_join") > 1; }));
  const auto zero = join_at_server(options_of(served.address(), 0, 2));
  ASSERT_TRUE(zero);
  const Status passed = (*zero)->barrier({"ready", seconds(60)});
  EXPECT_TRUE(passed) << passed.error().message;
}

// A rank that has heard what all of so many brought, before its coordinator is started again.
void come_back(Rank ranks, const std::string& brought) {
  std::atomic<bool> is_back = false;
  std::string gathered = "%2\r\n+lsn\r\n:1\r\n+share\r\n*" + std::to_string(ranks) + "\r\n";
  for (Rank rank = 0; rank < ranks; ++rank)
    gathered += "%1\r\n+bytes\r\n$" + std::to_string(brought.size()) + "\r\n" + brought + "\r\n";
  ScriptedServer server([&](const Words& words) -> std::string {
    if (words[0] == "GROUP_JOIN") return "%2\r\n+lsn\r\n:1\r\n+generation\r\n:1\r\n";
    if (words[0] == "GROUP_WATCH") return "-LEASE_LOST it is over\r\n";  // the watch alone ends by that
    if (words[0] == "GROUP_RESUME") is_back = true;
    if (words[0] != "GROUP_MEET") return "%1\r\n+lsn\r\n:1\r\n";
    if (words[5] == "0") return gathered;
    return is_back ? "%2\r\n+lsn\r\n:1\r\n+share\r\n*0\r\n" : "-NOT_FOUND it was started again\r\n";
  });
  const auto zero = join_at_server(options_of(server.address(), 0, ranks));
  ASSERT_TRUE(zero) << zero.error().message;
  const auto all = (*zero)->all_gather({"hosts", seconds(60)}, bytes_of(brought));
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->size(), ranks);
  const Status passed = (*zero)->barrier({"ready", seconds(60)});
  EXPECT_TRUE(passed) << passed.error().message;
}

// C3: what they brought has more words, or more bytes, than a command may have.
TEST(RanksAtACoordinator, ComeBackHoweverManyThereAre) { come_back(2040, "x"); }
TEST(RanksAtACoordinator, ComeBackHoweverMuchTheyBrought) {
  come_back(1, std::string(kContributionBytesMax, 'x'));
}

// X7: whoever looks at a job that stands sees why
TEST(RanksAtACoordinator, SayForWhomTheyHaveWaitedLong) {
  ::testing::internal::CaptureStderr();
  {
    std::atomic<int> watches = 0;
    std::latch told(2);
    ScriptedServer server([&](const Words& words) -> std::string {
      if (words[0] == "GROUP_JOIN") return "%2\r\n+lsn\r\n:1\r\n+generation\r\n:1\r\n";
      if (words[0] != "GROUP_WATCH") return "+OK\r\n";
      const int number = ++watches;
      if (number <= 2) told.count_down();
      return number == 1 ? "%2\r\n+lsn\r\n:1\r\n+waited_for\r\n+barrier: rank 1 is missing\r\n"
                         : "-LEASE_LOST it is over\r\n";
    });
    const auto zero = join_at_server(options_of(server.address(), 0, 2));
    ASSERT_TRUE(zero) << zero.error().message;
    told.wait();
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "baton: barrier: rank 1 is missing\n");
}

TEST(RanksAtACoordinator, SayNoMoreOfWhatTheyAreDoingThanItTakes) {
  std::mutex mutex;
  std::vector<std::string> told;
  std::latch all(2);
  ScriptedServer server([&](const Words& words) -> std::string {
    if (words[0] == "GROUP_JOIN") return "%2\r\n+lsn\r\n:1\r\n+generation\r\n:1\r\n";
    if (const auto at = std::ranges::find(words, "DOING"); at != words.end()) {
      const std::lock_guard lock(mutex);
      told.push_back(at[1]);
      all.count_down();
    }
    return "%1\r\n+lsn\r\n:1\r\n";
  });
  const auto zero = join_at_server(options_of(server.address(), 0, 2));
  ASSERT_TRUE(zero) << zero.error().message;
  (*zero)->tell_doing(std::string(199, 'x') + "\xC3\xA9");
  (*zero)->tell_doing(std::string(198, 'x') + "\xC3\xA9, and more");
  all.wait();
  const std::lock_guard lock(mutex);
  EXPECT_EQ(told, (Words{std::string(199, 'x'), std::string(198, 'x') + "\xC3\xA9"}));
}

TEST(RanksAtACoordinator, AreRefusedClearly) {
  EXPECT_EQ(join_at_server(options_of("127.0.0.1:1", 2, 2)).error().code, Errc::invalid_request);
  ServerCollectiveOptions nobody_there = options_of("127.0.0.1:1", 0, 1);
  nobody_there.join_deadline = milliseconds(300);
  EXPECT_EQ(join_at_server(nobody_there).error().code, Errc::unavailable);
}

}  // namespace
}  // namespace baton::checkpoint
