// Ranks, their coordinator and what happens between them, by chance but the same way for the same seed: words
// and answers get lost, the coordinator is started again and knows nothing, ranks die and are replaced.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "group/group.h"

namespace baton::group {
namespace {

constexpr Duration kStep = milliseconds(100);
constexpr std::uint64_t kOperations = 30;

struct Chances {  // of a thousand, at every step
  unsigned word_lost = 0;
  unsigned answer_lost = 0;
  unsigned restart = 0;
  unsigned death = 0;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Rank world_size, Chances chances)
      : dice_(seed), chances_(chances), ranks_(world_size) {}

  // Until every rank that lives has been through all operations of the newest generation.
  void run() {
    for (int step = 0; step < 20'000; ++step) {
      now_ = now_ + kStep;
      if (by_chance(chances_.restart)) restart();
      if (group_) group_->pass(now_), deliver();
      for (Rank rank = 0; rank < ranks_.size(); ++rank) act(rank);
      if (is_over()) return;
    }
    FAIL() << "it never ends";
  }

  std::size_t restarts() const { return restarts_; }
  std::size_t deaths() const { return deaths_; }
  std::size_t told_from_memory() const { return told_from_memory_; }

 private:
  struct Person {  // what a process knows that is a rank
    bool is_dead = false;
    std::string incarnation;
    Generation generation = 0;
    std::uint64_t number = 0;
    std::optional<Kept> kept;
    Waiter waiter = 0;  // of the question it waits for; 0: none
  };
  struct Ending {
    bool is_fine = false;
    std::string error;
  };

  bool by_chance(unsigned of_thousand) { return dice_() % 1000 < of_thousand; }

  // The same for all ranks, of every generation.
  Operation operation(std::uint64_t number) const {
    return {static_cast<OperationKind>(number * 7 % 4), "op-" + std::to_string(number % 5),
            static_cast<Rank>(number % 4 % 2 == 0 ? 0 : number % ranks_.size())};
  }
  static Bytes contribution(Rank rank, std::uint64_t number) {
    return Bytes(1 + number % 3, static_cast<std::byte>(rank * 16 + number % 16));
  }
  std::vector<Bytes> expected(Rank rank, std::uint64_t number) const {
    const Operation all = operation(number);
    if (all.kind == OperationKind::barrier) return {};
    if (all.kind == OperationKind::broadcast) return {contribution(all.root, number)};
    if (all.kind == OperationKind::gather && all.root != rank) return {};
    std::vector<Bytes> everything;
    for (Rank of = 0; of < ranks_.size(); ++of) everything.push_back(contribution(of, number));
    return everything;
  }

  Joining joining(Rank rank) const {
    return {.rank = rank,
            .world_size = static_cast<Rank>(ranks_.size()),
            .incarnation = ranks_[rank].incarnation,
            .where = {},
            .time_to_live = kTimeToLive};
  }
  Seat seat(Rank rank) const { return {rank, ranks_[rank].incarnation, ranks_[rank].generation}; }

  void restart() {
    ++restarts_;
    group_.reset();
    owners_.clear();
    for (Person& person : ranks_) person.waiter = 0;  // connections break, and each asks again
    last_generation_ += 1'000;
  }

  void act(Rank rank) {
    Person& person = ranks_[rank];
    if (!person.is_dead && deaths_ < 3 && by_chance(chances_.death)) {
      person.is_dead = true;
      ++deaths_;
      return;
    }
    if (person.is_dead) {
      if (by_chance(5)) person = {};  // somebody starts it again
      return;
    }
    if (by_chance(chances_.word_lost)) person.waiter = 0;  // its connection broke: it asks again
    if (person.generation == 0) return join(rank);
    const Status alive = group_ ? group_->beat(seat(rank), std::nullopt, now_) : Status();
    const bool is_known = group_ && (alive || alive.error().code != Errc::not_found);
    if (is_known && !alive) {
      person = {};  // it is told to join again
      return;
    }
    if (!is_known && !resume(rank)) return;
    if (person.waiter == 0 && person.number < kOperations) ask(rank);
  }

  bool resume(Rank rank) {
    Person& person = ranks_[rank];
    if (!group_) group_.emplace(joining(rank), person.generation, true, now_);
    std::vector<Kept> kept;
    if (person.kept) kept.push_back(*person.kept);
    const Status resumed = group_->resume(joining(rank), person.generation, kept, now_);
    if (!resumed) person = {};
    deliver();
    return resumed.has_value();
  }

  void join(Rank rank) {
    Person& person = ranks_[rank];
    if (person.incarnation.empty()) person.incarnation = std::to_string(++incarnations_);
    if (!group_) {
      group_.emplace(joining(rank), ++last_generation_, false, now_);
    } else {
      const auto joined = group_->join(joining(rank), last_generation_ + 1, now_);
      ASSERT_TRUE(joined) << joined.error().message;
      last_generation_ = std::max(last_generation_, *joined);
      deliver();
    }
    if (by_chance(chances_.answer_lost)) return;  // it does not hear that it has joined, and joins again
    person.generation = group_->generation();
  }

  void ask(Rank rank) {
    Person& person = ranks_[rank];
    came_[{person.generation, person.number}].insert(rank);
    person.waiter = ++last_waiter_;
    owners_[person.waiter] = rank;
    const Status arrived = group_->arrive(
        seat(rank),
        {"", person.number, operation(person.number), contribution(rank, person.number), hours(1)},
        person.waiter, now_);
    ASSERT_TRUE(arrived) << arrived.error().message;
    deliver();
  }

  void deliver() {
    for (Answer& answer : group_->take_answers()) {
      const auto owner = owners_.find(answer.waiter);
      if (owner == owners_.end()) continue;
      const Rank rank = owner->second;
      owners_.erase(owner);
      Person& person = ranks_[rank];
      if (person.is_dead || person.waiter != answer.waiter) continue;
      person.waiter = 0;
      if (by_chance(chances_.answer_lost)) continue;
      hear(rank, answer.outcome);
    }
  }

  void hear(Rank rank, const Result<Share>& outcome) {
    Person& person = ranks_[rank];
    const std::pair key{person.generation, person.number};
    if (!outcome && outcome.error().code == Errc::lease_lost) {
      person = {};
      return;
    }
    const auto [ending, is_first] = endings_.try_emplace(
        key, Ending{outcome.has_value(), outcome ? std::string() : outcome.error().message});
    // C2: an operation ends once, the same way for everybody
    ASSERT_EQ(ending->second.is_fine, outcome.has_value())
        << "rank " << rank << " at " << person.number << ": "
        << (outcome ? ending->second.error : outcome.error().message);
    if (outcome) {
      ASSERT_EQ(came_[key].size(), ranks_.size()) << "somebody has not come, and it ended well";
      ASSERT_EQ(**outcome, expected(rank, person.number)) << "rank " << rank << " at " << person.number;
    } else {
      ASSERT_EQ(outcome.error().code, Errc::unavailable) << outcome.error().message;
      ASSERT_GT(deaths_, 0U) << outcome.error().message;
    }
    if (!is_first && restarts_ > 0) ++told_from_memory_;
    person.kept =
        Kept{"", person.number, operation(person.number), outcome, contribution(rank, person.number)};
    ++person.number;
  }

  bool is_over() const {
    Generation newest = 0;
    for (const Person& person : ranks_) newest = std::max(newest, person.generation);
    return std::ranges::all_of(ranks_, [&](const Person& person) {
      return person.is_dead || (person.generation == newest && person.number == kOperations);
    });
  }

  std::mt19937_64 dice_;
  const Chances chances_;
  std::vector<Person> ranks_;
  std::optional<Group> group_;
  Instant now_{1'000'000};
  Generation last_generation_ = 0;
  std::uint64_t incarnations_ = 0;
  Waiter last_waiter_ = 0;
  std::map<Waiter, Rank> owners_;
  std::map<std::pair<Generation, std::uint64_t>, std::set<Rank>> came_;
  std::map<std::pair<Generation, std::uint64_t>, Ending> endings_;
  std::size_t restarts_ = 0;
  std::size_t deaths_ = 0;
  std::size_t told_from_memory_ = 0;
};

std::size_t simulate(Chances chances, std::size_t (Simulation::*count)() const) {
  std::size_t counted = 0;
  for (std::uint64_t seed = 1; seed <= 2'000 && !::testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation simulation(seed, static_cast<Rank>(1 + seed % 5), chances);
    simulation.run();
    counted += (simulation.*count)();
  }
  return counted;
}

// C1
TEST(GroupSimulation, AllRanksGoThroughAllOperationsInStep) { simulate({}, &Simulation::restarts); }

TEST(GroupSimulation, WhatIsLostIsSaidAgain) {
  simulate({.word_lost = 50, .answer_lost = 200}, &Simulation::restarts);
}

// C3
TEST(GroupSimulation, AfterARestartTheRanksGoOnWhereTheyWere) {
  const std::size_t restarts =
      simulate({.word_lost = 50, .answer_lost = 200, .restart = 50}, &Simulation::restarts);
  EXPECT_GT(restarts, 1'000U);
}

// C3: whoever missed an answer that the others got gets that answer
TEST(GroupSimulation, WhoMissedAnAnswerGetsWhatTheOthersGot) {
  const std::size_t told = simulate({.answer_lost = 300, .restart = 100}, &Simulation::told_from_memory);
  EXPECT_GT(told, 1'000U);
}

// C2, C3
TEST(GroupSimulation, TheDeadAreToldOfAndReplaced) {
  const std::size_t deaths =
      simulate({.word_lost = 20, .answer_lost = 100, .restart = 5, .death = 10}, &Simulation::deaths);
  EXPECT_GT(deaths, 1'000U);
}

}  // namespace
}  // namespace baton::group
