// What a Collective promises, on every one that comes with baton.
#include "checkpoint/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <mutex>
#include <thread>

#include "checkpoint/in_process_collective.h"
#include "checkpoint/typed_collective.h"
#include "tests/checkpoint/collective_subject.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Duration kSoon = milliseconds(100);

class Collectives : public ::testing::TestWithParam<CollectiveSubject> {
 protected:
  std::unique_ptr<TestGroup> group(Rank world_size) { return GetParam().make(world_size); }
};

// What each rank got, by rank.
template <class T>
class Results {
 public:
  explicit Results(Rank world_size) : results_(world_size) {}
  void put(Rank rank, T result) {
    const std::lock_guard lock(mutex_);
    results_[rank] = std::move(result);
  }
  const std::vector<T>& all() const { return results_; }

 private:
  std::mutex mutex_;
  std::vector<T> results_;
};

std::string said(const Status& status) {
  return status ? "fine" : std::string(word(status.error().code)) + ": " + status.error().message;
}
template <class T>
std::string said(const Result<T>& result) {
  return result ? "fine" : std::string(word(result.error().code)) + ": " + result.error().message;
}

// C1
TEST_P(Collectives, NobodyPassesABarrierBeforeAllHaveCome) {
  constexpr Rank kRanks = 4;
  const auto ranks = group(kRanks);
  std::atomic<Rank> came = 0;
  Results<Rank> seen(kRanks);
  on_every_rank(*ranks, kRanks, [&](Collective& collective) {
    ++came;
    ASSERT_TRUE(collective.barrier({"ready"}));
    seen.put(collective.rank(), came);
  });
  EXPECT_THAT(seen.all(), Each(kRanks));
}

// C1
TEST_P(Collectives, BroadcastGivesEverybodyWhatTheRootHas) {
  const auto ranks = group(3);
  Results<std::string> got(3);
  on_every_rank(*ranks, 3, [&](Collective& collective) {
    const std::string mine = "of rank " + std::to_string(collective.rank());
    auto bytes = collective.broadcast({"config"}, bytes_of(mine), 1);
    got.put(collective.rank(), bytes ? std::string(text_of(*bytes)) : said(bytes));
  });
  EXPECT_THAT(got.all(), Each("of rank 1"));
}

// C1
TEST_P(Collectives, GatherGivesTheRootEverythingInTheOrderOfRanks) {
  const auto ranks = group(3);
  Results<std::vector<std::string>> got(3);
  on_every_rank(*ranks, 3, [&](Collective& collective) {
    const std::string mine = std::to_string(collective.rank());
    auto all = collective.gather({"hosts"}, bytes_of(mine), 2);
    ASSERT_TRUE(all) << said(all);
    std::vector<std::string> texts;
    for (const Bytes& bytes : *all) texts.emplace_back(text_of(bytes));
    got.put(collective.rank(), texts);
  });
  EXPECT_THAT(got.all(), ::testing::ElementsAre(std::vector<std::string>{}, std::vector<std::string>{},
                                                std::vector<std::string>{"0", "1", "2"}));
}

// C1, C14: the order of additions is that of the ranks, everywhere
TEST_P(Collectives, AllReduceFoldsInTheOrderOfRanksEverywhere) {
  constexpr Rank kRanks = 4;
  const auto ranks = group(kRanks);
  const std::vector<double> values{1e16, 1.0, -1e16, 1.0};  // another order gives another sum
  Results<double> got(kRanks);
  on_every_rank(*ranks, kRanks, [&](Collective& collective) {
    auto sum = all_reduce(collective, {"loss"}, values[collective.rank()], std::plus<double>());
    ASSERT_TRUE(sum) << said(sum);
    got.put(collective.rank(), *sum);
  });
  EXPECT_THAT(got.all(), Each(((1e16 + 1.0) + -1e16) + 1.0));
}

// C14
TEST_P(Collectives, AreTyped) {
  const auto ranks = group(2);
  on_every_rank(*ranks, 2, [&](Collective& collective) {
    const auto text = broadcast(collective, {"text"}, std::string(collective.rank() == 0 ? "hello" : ""));
    ASSERT_TRUE(text);
    EXPECT_EQ(*text, "hello");
    const auto lists = all_gather(collective, {"lists"}, std::vector<int>(collective.rank() + 1, 7));
    ASSERT_TRUE(lists);
    EXPECT_EQ(*lists, (std::vector<std::vector<int>>{{7}, {7, 7}}));
  });
}

// C2
TEST_P(Collectives, ATimeoutNamesEveryMissingRankOnEveryRank) {
  const auto ranks = group(4);
  Results<std::string> heard(4);
  {
    const auto idle = ranks->join(3);
    ASSERT_TRUE(idle);
    (*idle)->tell_doing("writing");
    std::vector<std::jthread> threads;
    for (const Rank rank : {0U, 2U}) {
      threads.emplace_back([&, rank] {
        const auto collective = ranks->join(rank);
        ASSERT_TRUE(collective);
        heard.put(rank, said((*collective)->barrier({"epoch_end", seconds(2)})));  // so that both have come
      });
    }
    threads.clear();  // joined
    for (const Rank rank : {0U, 2U}) {
      EXPECT_THAT(heard.all()[rank], AllOf(HasSubstr("DEADLINE_EXCEEDED"), HasSubstr("epoch_end"),
                                           HasSubstr("2 of 4"), HasSubstr("rank 1"), HasSubstr("rank 3"),
                                           HasSubstr("writing"), Not(HasSubstr("rank 2 ("))));
    }
  }
}

// C2: and the late one hears the same, at once
TEST_P(Collectives, WhoComesTooLateHearsHowItEndedAndIsInStepAgain) {
  const auto ranks = group(2);
  const auto early = ranks->join(0);
  const auto late = ranks->join(1);
  ASSERT_TRUE(early);
  ASSERT_TRUE(late);
  EXPECT_THAT(said((*early)->barrier({"first", kSoon})), HasSubstr("missing: rank 1"));
  EXPECT_THAT(said((*late)->barrier({"first", hours(1)})), HasSubstr("missing: rank 1"));
  std::jthread other([&] { EXPECT_EQ(said((*early)->barrier({"second"})), "fine"); });
  EXPECT_EQ(said((*late)->barrier({"second"})), "fine");
}

// C2: also of more operations than are kept for it
TEST_P(Collectives, WhoSleepsThroughManyOperationsIsInStepAgain) {
  constexpr int kMany = 1030;
  const auto ranks = group(2);
  const auto early = ranks->join(0);
  const auto late = ranks->join(1);
  ASSERT_TRUE(early && late);
  {
    std::jthread other([&] { EXPECT_EQ(said((*early)->barrier({"first"})), "fine"); });
    EXPECT_EQ(said((*late)->barrier({"first"})), "fine");
  }
  const auto vote = [](Collective& one) { return said(one.vote({"fine"}, failure(Errc::io_failed, "no"))); };
  for (int i = 0; i < kMany; ++i) ASSERT_EQ(vote(**early), "IO_FAILED: rank 0: no");
  EXPECT_EQ(vote(**late), "DEADLINE_EXCEEDED: vote \"fine\": it ended long ago, without rank 1");
  for (int i = 1; i < kMany; ++i) ASSERT_NE(vote(**late), "fine") << i;
  std::jthread other([&] { EXPECT_EQ(said((*early)->barrier({"last"})), "fine"); });
  EXPECT_EQ(said((*late)->barrier({"last"})), "fine");
}

// X5: all hear it, and it is kept for those who have not come
TEST_P(Collectives, TheTextOfAnErrorHasALimit) {
  const auto ranks = group(2);
  const auto zero = ranks->join(0);
  const auto one = ranks->join(1);
  ASSERT_TRUE(zero && one);
  const auto heard = [&](const std::string& text) {
    EXPECT_FALSE((*one)->vote({"written"}, failure(Errc::io_failed, text)));
    const std::string of_one = (*zero)->vote({"written"}, {}).error().message;
    EXPECT_THAT(of_one, ::testing::StartsWith("rank 1: xxx"));
    return of_one.size() - std::string_view("rank 1: ").size();
  };
  EXPECT_EQ(heard(std::string(group::kErrorBytesMax, 'x')), group::kErrorBytesMax);
  EXPECT_EQ(heard(std::string(5 << 20, 'x')), group::kErrorBytesMax);
  EXPECT_EQ(heard(std::string(group::kErrorBytesMax - 1, 'x') + "\xC3\xA9"), group::kErrorBytesMax - 1);
}

TEST_P(Collectives, AnyDeadlineWillDo) {
  const auto ranks = group(2);
  on_every_rank(*ranks, 2, [&](Collective& collective) {
    EXPECT_EQ(said(collective.barrier({"ready", days(10'000)})), "fine");
  });
}

// C2: "rank 3 at B, the rest at A"
TEST_P(Collectives, RanksAtDifferentOperationsAreToldWhoIsWhere) {
  const auto ranks = group(3);
  Results<std::string> heard(3);
  on_every_rank(*ranks, 3, [&](Collective& collective) {
    const bool strays = collective.rank() == 1;
    heard.put(collective.rank(), said(collective.barrier({strays ? "save" : "epoch_end"})));
  });
  EXPECT_THAT(heard.all(), Each(AllOf(HasSubstr("CONFLICT"), HasSubstr("\"save\""),
                                      HasSubstr("\"epoch_end\""), HasSubstr("rank"))));
}

// C2: whoever reads an error looks for the call that the program made
TEST_P(Collectives, EveryOperationIsCalledByItsOwnName) {
  using Meet = std::function<std::string(Collective&, const Call&)>;
  const Collective::Reducer left = [](ByteView kept, ByteView) { return Bytes(kept.begin(), kept.end()); };
  const std::vector<std::pair<std::string, Meet>> operations{
      {"barrier", [](Collective& one, const Call& call) { return said(one.barrier(call)); }},
      {"vote", [](Collective& one, const Call& call) { return said(one.vote(call, {})); }},
      {"broadcast", [](Collective& one, const Call& call) { return said(one.broadcast(call, ByteView{})); }},
      {"gather", [](Collective& one, const Call& call) { return said(one.gather(call, ByteView{})); }},
      {"all_gather",
       [](Collective& one, const Call& call) { return said(one.all_gather(call, ByteView{})); }},
      {"all_reduce",
       [&](Collective& one, const Call& call) { return said(one.all_reduce(call, ByteView{}, left)); }},
      {"all_reduce",
       [](Collective& one, const Call& call) { return said(all_reduce(one, call, 1, std::plus())); }},
  };
  const auto ranks = group(2);
  const auto early = ranks->join(0);
  const auto late = ranks->join(1);
  ASSERT_TRUE(early && late);
  for (const auto& [kind, meet] : operations) {
    EXPECT_THAT(meet(**early, {"loss", kSoon}), HasSubstr("DEADLINE_EXCEEDED: " + kind + " \"loss\""));
    EXPECT_THAT(meet(**late, {"loss", kSoon}), HasSubstr("DEADLINE_EXCEEDED: " + kind + " \"loss\""));

    std::string heard;
    std::jthread strays([&] { heard = said((*late)->barrier({"epoch_end"})); });
    EXPECT_THAT(meet(**early, {"loss"}), AllOf(HasSubstr("CONFLICT"), HasSubstr(kind + " \"loss\"")));
    strays.join();
    EXPECT_THAT(heard, HasSubstr(kind + " \"loss\""));
  }
}

TEST_P(Collectives, TheSameNameWithAnotherRootIsAnotherOperation) {
  const auto ranks = group(2);
  Results<std::string> heard(2);
  on_every_rank(*ranks, 2, [&](Collective& collective) {
    heard.put(collective.rank(), said(collective.broadcast({"config"}, ByteView{}, collective.rank())));
  });
  EXPECT_THAT(heard.all(), Each(HasSubstr("CONFLICT")));
}

// C2: one rank's error reaches all as that error, and nobody waits for those who have not come
TEST_P(Collectives, AnErrorOfOneRankReachesAllAtOnce) {
  const auto ranks = group(3);
  Results<std::string> heard(3);
  const auto absent = ranks->join(2);  // never comes to the vote
  std::vector<std::jthread> threads;
  for (const Rank rank : {0U, 1U}) {
    threads.emplace_back([&, rank] {
      const auto collective = ranks->join(rank);
      Status mine;
      if (rank == 1) mine = failure(Errc::no_space, "disk full");
      heard.put(rank, said((*collective)->vote({"written", hours(1)}, mine)));
    });
  }
  threads.clear();
  EXPECT_EQ(heard.all()[0], "NO_SPACE: rank 1: disk full");
  EXPECT_EQ(heard.all()[1], "NO_SPACE: rank 1: disk full");
  EXPECT_EQ(said((*absent)->vote({"written", hours(1)}, {})), "NO_SPACE: rank 1: disk full");
}

// C2
TEST_P(Collectives, ARankThatIsGoneIsNamedWithoutWaitingForTheDeadline) {
  const auto ranks = group(2);
  std::string heard;
  {
    std::jthread waiting([&] {
      const auto collective = ranks->join(0);
      heard = said((*collective)->barrier({"ready", hours(1)}));
    });
    const auto leaving = ranks->join(1);
  }
  EXPECT_THAT(heard, AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("rank 1")));
}

// C14
TEST_P(Collectives, WhoIsStoppedIsNamedToTheOthers) {
  const auto ranks = group(3);
  Results<std::string> heard(3);
  std::stop_source stop;
  const auto absent = ranks->join(2);
  std::vector<std::jthread> threads;
  for (const Rank rank : {0U, 1U}) {
    threads.emplace_back([&, rank] {
      const auto collective = ranks->join(rank);
      heard.put(
          rank,
          said(
              (*collective)->barrier({"ready", hours(1), rank == 1 ? stop.get_token() : std::stop_token{}})));
    });
  }
  stop.request_stop();
  threads.clear();
  EXPECT_THAT(heard.all()[0], AllOf(HasSubstr("CLOSED"), HasSubstr("rank 1 was stopped")));
  EXPECT_THAT(heard.all()[1], AllOf(HasSubstr("CLOSED"), HasSubstr("rank 1 was stopped")));
}

// C3
TEST_P(Collectives, ARankOfAnOlderGenerationIsFencedAtOnce) {
  const auto ranks = group(2);
  const auto old_0 = ranks->join(0);
  const auto old_1 = ranks->join(1);
  ASSERT_TRUE(old_0);
  ASSERT_TRUE(old_1);
  const auto new_1 = ranks->join(1);
  ASSERT_TRUE(new_1);
  EXPECT_GT((*new_1)->generation(), (*old_1)->generation());
  EXPECT_THAT(said((*old_0)->barrier({"ready", hours(1)})), HasSubstr("LEASE_LOST"));
  EXPECT_THAT(said((*old_1)->barrier({"ready", hours(1)})), HasSubstr("LEASE_LOST"));

  const auto new_0 = ranks->join(0);
  ASSERT_TRUE(new_0);
  std::jthread other([&] { EXPECT_EQ(said((*new_1)->barrier({"ready"})), "fine"); });
  EXPECT_EQ(said((*new_0)->barrier({"ready"})), "fine");
}

// C3: whoever waits when a generation ends is told
TEST_P(Collectives, ANewGenerationWakesThoseWhoWaitInTheOldOne) {
  const auto ranks = group(2);
  std::string heard;
  auto old_0 = ranks->join(0);
  auto old_1 = ranks->join(1);
  std::jthread waiting([&] { heard = said((*old_0)->barrier({"ready", hours(1)})); });
  const auto new_1 = ranks->join(1);
  waiting.join();
  EXPECT_THAT(heard, HasSubstr("LEASE_LOST"));
}

TEST_P(Collectives, StreamsAreCountedApart) {
  const auto ranks = group(2);
  on_every_rank(*ranks, 2, [&](Collective& collective) {
    const auto background = collective.stream("background");
    ASSERT_TRUE(background);
    // Each rank takes the two in another order.
    if (collective.rank() == 0) {
      std::jthread saver([&] { EXPECT_EQ(said((*background)->barrier({"save"})), "fine"); });
      EXPECT_EQ(said(collective.barrier({"train"})), "fine");
    } else {
      std::jthread trainer([&] { EXPECT_EQ(said(collective.barrier({"train"})), "fine"); });
      EXPECT_EQ(said((*background)->barrier({"save"})), "fine");
    }
    EXPECT_EQ(said(collective.barrier({"end"})), "fine");
  });
}

TEST_P(Collectives, AStreamThatIsMadeAgainGoesOnWhereItWas) {
  const auto ranks = group(2);
  on_every_rank(*ranks, 2, [&](Collective& collective) {
    for (int round = 0; round < 3; ++round) {
      const auto background = collective.stream("background");
      ASSERT_TRUE(background);
      EXPECT_EQ(said((*background)->barrier({"save"})), "fine");
    }
  });
}

TEST_P(Collectives, ContributionsHaveALimit) {
  const auto ranks = group(2);
  Results<std::string> heard(2);
  on_every_rank(*ranks, 2, [&](Collective& collective) {
    const Bytes largest(kContributionBytesMax);
    EXPECT_EQ(said(collective.gather({"fits"}, largest)), "fine");
    const Bytes too_large(kContributionBytesMax + 1);
    heard.put(collective.rank(),
              said(collective.gather({"too large"}, collective.rank() == 1 ? too_large : largest)));
  });
  EXPECT_THAT(heard.all(), Each(AllOf(HasSubstr("TOO_LARGE"), HasSubstr("rank 1"))));
}

TEST_P(Collectives, NamesHaveALimitAndRootsAreRanks) {
  const auto ranks = group(1);
  const auto alone = ranks->join(0);
  EXPECT_EQ(said((*alone)->barrier({std::string(kOperationNameBytesMax, 'x')})), "fine");
  EXPECT_THAT(said((*alone)->barrier({std::string(kOperationNameBytesMax + 1, 'x')})),
              HasSubstr("INVALID_REQUEST"));
  EXPECT_THAT(said((*alone)->barrier({""})), HasSubstr("INVALID_REQUEST"));
  EXPECT_THAT(said((*alone)->broadcast({"config"}, ByteView{}, 1)), HasSubstr("INVALID_REQUEST"));
}

TEST_P(Collectives, ManyOperationsOneAfterTheOther) {
  constexpr Rank kRanks = 5;
  const auto ranks = group(kRanks);
  on_every_rank(*ranks, kRanks, [&](Collective& collective) {
    for (std::uint64_t round = 0; round < 200; ++round) {
      const auto sum = all_reduce(collective, {"sum"}, round + collective.rank(), std::plus<std::uint64_t>());
      ASSERT_TRUE(sum) << said(sum);
      ASSERT_EQ(*sum, kRanks * round + kRanks * (kRanks - 1) / 2);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, Collectives, ::testing::ValuesIn(collective_subjects()),
                         [](const auto& subject) { return subject.param.name; });

// C2: one thread at a time uses a collective, and another that tries harms only itself
TEST(AnInProcessCollective, IsInStepAfterASecondThreadWasRefused) {
  InProcessGroup group(2);
  const auto mine = *group.join(0);
  const auto other = *group.join(1);
  std::latch one_was_refused(1);
  std::atomic<int> refused = 0;
  const auto come = [&] {
    const auto met = mine->barrier({"here"});
    if (met) return;
    EXPECT_THAT(said(met), HasSubstr("is still at barrier \"here\""));
    ++refused;
    one_was_refused.count_down();
  };
  {
    const std::jthread first(come);
    const std::jthread second(come);
    one_was_refused.wait();
    EXPECT_EQ(said(other->barrier({"here"})), "fine");
  }
  EXPECT_EQ(refused, 1);
  const std::jthread next([&] { EXPECT_EQ(said(other->barrier({"next"})), "fine"); });
  EXPECT_EQ(said(mine->barrier({"next"})), "fine");
}

// One of two ranks whose coordinator gives so many shares, whatever it is asked.
class Misled final : public Collective {
 public:
  explicit Misled(std::size_t shares) : shares_(shares) {}
  Rank rank() const override { return 0; }
  Rank world_size() const override { return 2; }
  std::uint64_t generation() const override { return 1; }
  Result<std::unique_ptr<Collective>> stream(const std::string&) override {
    return std::make_unique<Misled>(shares_);
  }

 protected:
  Result<std::vector<Bytes>> meet(const Operation&, const Contribution&, const Call&) override {
    return std::vector<Bytes>(shares_);
  }

 private:
  const std::size_t shares_;
};

// C2: what comes over a network ends no process
TEST(ACollective, ThatGetsTooManySharesOrTooFewSaysSo) {
  Misled none(0);
  EXPECT_THAT(said(none.broadcast({"config"}, ByteView{})),
              "CORRUPT: broadcast \"config\" with root 0 gave 0 shares in place of 1");
  const auto first = [](ByteView left, ByteView) { return Bytes(left.begin(), left.end()); };
  EXPECT_THAT(said(none.all_reduce({"loss"}, ByteView{}, first)), HasSubstr("CORRUPT"));
  EXPECT_EQ(said(none.barrier({"ready"})), "fine");
  Misled three(3);
  EXPECT_THAT(said(three.all_gather({"hosts"}, ByteView{})), HasSubstr("CORRUPT"));
  EXPECT_THAT(said(three.gather({"hosts"}, ByteView{})), HasSubstr("CORRUPT"));
}

}  // namespace
}  // namespace baton::checkpoint
