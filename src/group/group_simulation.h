// Ranks, their coordinator and what happens between them, by chance but the same way for the same seed: words
// and answers get lost, the coordinator is stopped or crashes, is started again and knows nothing, ranks come
// late, die and are replaced. Each rank is at operations of two streams at a time.
//
// What holds whatever happens:
//   one end    an operation ends well for all who hear of it, or badly for all, as long as one of those lives
//              who heard first
//   complete   it ends well only if every rank came, and each gets what the operation says
//   reason     it ends badly only if a rank died or the time of one was up, and then names who is missing
//   no cause   a coordinator that stops, crashes or loses words is no reason
//   bounded    nobody waits longer than its deadline
//   apart      what happens in one stream ends nothing in the other
//   progress   every rank that lives gets through all operations of the newest generation
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <random>

#include "group/group.h"
#include "group/memory.h"

namespace baton::group {

inline constexpr Duration kStep = milliseconds(100);
inline constexpr Duration kPatience = hours(1);
inline constexpr std::uint64_t kOperations = 30;
inline constexpr std::array<std::string_view, 2> kStreams{"", "saver"};
inline constexpr std::size_t kPunctual = 1;  // the stream in which nobody is late

struct Chances {  // of a thousand, at every step
  unsigned word_lost = 0;
  unsigned answer_lost = 0;
  unsigned crash = 0;
  unsigned stop = 0;
  unsigned death = 0;
  unsigned late = 0;
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, Rank world_size, Chances chances)
      : dice_(seed), chances_(chances), ranks_(world_size) {}

  void run() {
    for (int step = 0; step < 20'000 && !::testing::Test::HasFatalFailure(); ++step) {
      now_ = now_ + kStep;
      if (by_chance(chances_.crash)) forget_everything();
      if (by_chance(chances_.stop)) stop();
      if (group_) group_->pass(now_), deliver();
      for (Rank rank = 0; rank < ranks_.size(); ++rank) act(rank);
      if (is_over()) return;
    }
    FAIL() << "progress";
  }

  std::size_t restarts() const { return restarts_; }
  std::size_t deaths() const { return deaths_; }
  std::size_t timeouts() const { return timeouts_; }
  std::size_t told_from_memory() const { return told_from_memory_; }

 private:
  struct Place {  // of a rank in a stream
    Memory memory;
    Waiter waiter = 0;  // of the question it waits for; 0: none
    Instant asked;
    Duration deadline;
    Instant late_until;

    std::uint64_t number() const { return memory.next(); }
  };
  struct Person {  // what a process knows that is a rank
    bool is_dead = false;
    std::string incarnation;
    Generation generation = 0;
    std::array<Place, kStreams.size()> places;
  };
  struct Key {
    Generation generation = 0;
    std::size_t stream = 0;
    std::uint64_t number = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Ending {
    bool is_fine = false;
    std::string said;
    std::map<Rank, std::string> heard_by;  // and their incarnations
  };

  bool by_chance(unsigned of_thousand) { return dice_() % 1000 < of_thousand; }

  // The same for all ranks, of every generation.
  Operation operation(std::uint64_t number) const {
    return {static_cast<OperationKind>(number * 7 % 6), "op-" + std::to_string(number % 5),
            static_cast<Rank>(number % 4 % 2 == 0 ? 0 : number % ranks_.size())};
  }
  static Bytes contribution(Rank rank, std::uint64_t number) {
    return Bytes(1 + number % 3, static_cast<std::byte>(rank * 16 + number % 16));
  }
  std::vector<Bytes> expected(Rank rank, std::uint64_t number) const {
    const Operation all = operation(number);
    if (all.kind == OperationKind::barrier || all.kind == OperationKind::vote) return {};
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

  // Connections break, and each asks again at whoever comes after.
  void forget_everything() {
    ++restarts_;
    group_.reset();
    owners_.clear();
    for (Person& person : ranks_)
      for (Place& place : person.places) place.waiter = 0;
    last_generation_ += 1'000;
  }
  // What was decided before is still heard; whoever waits is told to ask again.
  void stop() {
    if (group_) deliver();
    forget_everything();
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
    if (person.generation == 0) return join(rank);
    const Status alive = group_ ? group_->beat(seat(rank), std::nullopt, now_) : Status();
    const bool is_known = group_ && (alive || alive.error().code != Errc::not_found);
    if (is_known && !alive) {
      person = {};  // it is told to join again
      return;
    }
    if (!is_known && !resume(rank)) return;
    for (std::size_t stream = 0; stream < kStreams.size(); ++stream) act_in(rank, stream);
  }

  void act_in(Rank rank, std::size_t stream) {
    Place& place = ranks_[rank].places[stream];
    ASSERT_TRUE(place.waiter == 0 || now_ - place.asked <= place.deadline + kStep) << "bounded";
    if (by_chance(chances_.word_lost)) place.waiter = 0;  // its connection broke: it asks again
    if (place.waiter != 0 || place.number() == kOperations) return;
    if (stream != kPunctual && by_chance(chances_.late))
      place.late_until = now_ + milliseconds(static_cast<std::int64_t>(dice_() % 6'000));
    if (now_ >= place.late_until) ask(rank, stream);
  }

  bool resume(Rank rank) {
    Person& person = ranks_[rank];
    if (!group_) group_.emplace(joining(rank), person.generation, true, now_);
    std::vector<Kept> kept;
    for (const Place& place : person.places) std::ranges::copy(place.memory.kept(), std::back_inserter(kept));
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

  void ask(Rank rank, std::size_t stream) {
    Person& person = ranks_[rank];
    Place& place = person.places[stream];
    const std::uint64_t number = place.number();
    const bool is_hasty = stream != kPunctual && chances_.late > 0 && dice_() % 2 == 0;
    place.waiter = ++last_waiter_;
    place.asked = now_;
    place.deadline = is_hasty ? seconds(2) : kPatience;
    came_[{person.generation, stream, number}].insert(rank);
    owners_[place.waiter] = {rank, stream};
    const Status arrived = group_->arrive(seat(rank),
                                          {std::string(kStreams[stream]), number, operation(number),
                                           contribution(rank, number), place.deadline},
                                          place.waiter, now_);
    ASSERT_TRUE(arrived) << arrived.error().message;
    deliver();
  }

  void deliver() {
    for (Answer& answer : group_->take_answers()) {
      const auto owner = owners_.find(answer.waiter);
      if (owner == owners_.end()) continue;
      const auto [rank, stream] = owner->second;
      owners_.erase(owner);
      Person& person = ranks_[rank];
      if (person.is_dead || person.places[stream].waiter != answer.waiter) continue;
      person.places[stream].waiter = 0;
      if (by_chance(chances_.answer_lost)) continue;
      hear(rank, stream, answer.outcome);
    }
  }

  void hear(Rank rank, std::size_t stream, const Result<Share>& outcome) {
    Person& person = ranks_[rank];
    if (!outcome && outcome.error().code == Errc::lease_lost) {
      person = {};
      return;
    }
    Place& place = person.places[stream];
    const std::uint64_t number = place.number();
    const Key key{person.generation, stream, number};
    const std::string said = outcome ? "well" : outcome.error().message;
    const auto [found, is_first] = endings_.try_emplace(key, Ending{outcome.has_value(), said, {}});
    Ending& ending = found->second;
    if (is_forgotten(ending)) ending = {outcome.has_value(), said, {}};
    ending.heard_by[rank] = person.incarnation;
    // C2
    ASSERT_EQ(ending.is_fine, outcome.has_value())
        << "one end: rank " << rank << " at " << number << " of \"" << kStreams[stream] << "\": " << said
        << "; another: " << ending.said;
    if (outcome) {
      ASSERT_EQ(came_[key].size(), ranks_.size()) << "complete";
      ASSERT_EQ(**outcome, expected(rank, number)) << "complete: rank " << rank << " at " << number;
    } else {
      expect_reason(key, outcome.error());
    }
    if (!is_first && restarts_ > 0) ++told_from_memory_;
    place.memory.add(
        {std::string(kStreams[stream]), number, operation(number), outcome, contribution(rank, number)});
  }

  bool is_forgotten(const Ending& ending) const {
    return std::ranges::none_of(ending.heard_by, [&](const auto& heard) {
      const Person& person = ranks_[heard.first];
      return !person.is_dead && person.incarnation == heard.second;
    });
  }

  // Who has not come by now had not come then.
  void expect_reason(const Key& key, const Error& error) {
    if (error.code == Errc::unavailable) {
      ASSERT_GT(deaths_, 0U) << "no cause: " << error.message;
      return;
    }
    ASSERT_EQ(error.code, Errc::deadline_exceeded) << "reason: " << error.message;
    ASSERT_NE(key.stream, kPunctual) << "apart: " << error.message;
    ++timeouts_;
    for (Rank rank = 0; rank < ranks_.size(); ++rank) {
      if (came_[key].contains(rank)) continue;
      ASSERT_NE(error.message.find("rank " + std::to_string(rank) + " ("), std::string::npos)
          << "reason: rank " << rank << " is not named: " << error.message;
    }
  }

  bool is_over() const {
    Generation newest = 0;
    for (const Person& person : ranks_) newest = std::max(newest, person.generation);
    return std::ranges::all_of(ranks_, [&](const Person& person) {
      return person.is_dead ||
             (person.generation == newest && std::ranges::all_of(person.places, [](const Place& place) {
                return place.number() == kOperations;
              }));
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
  std::map<Waiter, std::pair<Rank, std::size_t>> owners_;
  std::map<Key, std::set<Rank>> came_;
  std::map<Key, Ending> endings_;
  std::size_t restarts_ = 0;
  std::size_t deaths_ = 0;
  std::size_t timeouts_ = 0;
  std::size_t told_from_memory_ = 0;
};

}  // namespace baton::group
