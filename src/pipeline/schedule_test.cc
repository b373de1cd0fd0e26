#include "pipeline/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "pipeline/testing.h"

namespace baton::pipeline {
namespace {

using ::testing::ElementsAre;

using enum ModuleStatus;

// A schedule and the names of what it says.
class Told {
 public:
  explicit Told(const Sketch& sketch, const History& history = {})
      : graph_(sketch.graph()), schedule(graph_, history) {}

  std::string next() {
    const auto node = schedule.begin_next([](const Lane&) { return true; });
    return node ? graph_[*node].id : std::string("nothing");
  }
  void finish(const std::string& id, ModuleStatus status = succeeded) {
    schedule.finish(*graph_.find(id), status);
  }
  ModuleStatus status(const std::string& id) const { return schedule.status(*graph_.find(id)); }
  std::string reason(const std::string& id) const { return schedule.reason(*graph_.find(id)); }
  std::string held_up_by(const std::string& id) const { return schedule.held_up_by(*graph_.find(id)); }

 private:
  const Graph graph_;

 public:
  Schedule schedule;
};

TEST(Schedule, BeginsAModuleWhenAllItNeedsIsOver) {
  Sketch sketch;
  sketch.add("a"), sketch.add("b"), sketch.add("c", {"a", "b"});
  Told told(sketch);
  EXPECT_EQ(told.next(), "a");
  EXPECT_EQ(told.next(), "b");
  EXPECT_EQ(told.next(), "nothing");
  told.finish("b");
  EXPECT_EQ(told.next(), "nothing");
  told.finish("a");
  EXPECT_EQ(told.next(), "c");
  told.finish("c");
  EXPECT_TRUE(told.schedule.is_over());
}

TEST(Schedule, TakesTheUrgentFirstThenTheLongestWay) {  // P13
  Sketch sketch;
  sketch.add("short"), sketch.add("long"), sketch.add("behind long", {"long"});
  sketch.definition.modules.back().id = "behind";
  sketch.add("urgent").priority = Priority::critical;
  Told told(sketch, {{"short", seconds(5)}, {"long", seconds(3)}, {"behind", seconds(4)}});
  EXPECT_EQ(told.next(), "urgent");
  EXPECT_EQ(told.next(), "long");
  EXPECT_EQ(told.next(), "short");
}

TEST(AFailure, StopsTheRunButNotWhatAlwaysRuns) {  // P13 P7
  Sketch sketch;
  sketch.add("build"), sketch.add("test", {"build"}), sketch.add("other"), sketch.add("later", {"other"});
  sketch.add("cleanup", {"test"}).always_run = true;
  Told told(sketch);
  told.next(), told.next();
  told.finish("build", failed);
  EXPECT_EQ(told.status("test"), dependency_failed);
  EXPECT_EQ(told.reason("test"), "build failed");
  EXPECT_EQ(told.status("later"), cancelled);
  EXPECT_EQ(told.reason("later"), "build failed");
  EXPECT_EQ(told.next(), "cleanup");
  told.finish("other"), told.finish("cleanup");
  EXPECT_TRUE(told.schedule.is_over());
}

TEST(AFailure, AffectsOnlyWhatNeedsItWhereTheRunGoesOn) {  // P13
  Sketch sketch;
  sketch.definition.on_failure = OnFailure::finish;
  sketch.add("build"), sketch.add("test", {"build"}), sketch.add("publish", {"test"}), sketch.add("other"),
      sketch.add("later", {"other"});
  Told told(sketch);
  told.next(), told.next();
  told.finish("build", timed_out);
  EXPECT_EQ(told.status("publish"), dependency_failed);
  told.finish("other");
  EXPECT_EQ(told.next(), "later");
}

TEST(AnIgnoredFailure, LetsOthersGoOnUnlessTheyNeedItsResult) {  // P13
  Sketch sketch;
  sketch.add("lint"), sketch.add("after", {"lint"}),
      sketch.add("reader", {"lint"}).needs[0].takes_value = true;
  sketch.add("looker", {"lint"}).needs[0].kind = NeedKind::settled;
  Told told(sketch);
  told.next();
  told.finish("lint", ignored_failure);
  EXPECT_EQ(told.next(), "after");
  EXPECT_EQ(told.next(), "looker");
  EXPECT_EQ(told.status("reader"), skipped);
  EXPECT_EQ(told.reason("reader"), "lint failed, which it may, and so has no result");
}

TEST(ASkip, GoesOnToWhatRequiresItAndNotToWhatDoesNot) {  // P13
  Sketch sketch;
  sketch.add("a"), sketch.add("b", {"a"}), sketch.add("c", {"b"}),
      sketch.add("d", {"a"}).needs[0].kind = NeedKind::optional;
  Told told(sketch);
  told.next();
  told.finish("a", skipped);
  EXPECT_EQ(told.status("c"), skipped);
  EXPECT_EQ(told.reason("c"), "b was skipped");
  EXPECT_EQ(told.next(), "d");
}

// What a module that needs a matrix does, when its instances end so.
ModuleStatus after_matrix(ModuleStatus first, ModuleStatus second) {
  Sketch sketch;
  sketch.definition.on_failure = OnFailure::finish;
  sketch.add("m").targets = {{"x", {}}, {"y", {}}};
  sketch.add("after", {"m"});
  Told told(sketch);
  told.next(), told.next();
  told.finish("m[x]", first), told.finish("m[y]", second);
  return told.status("after");
}
TEST(AMatrix, IsThereWhenNoneFailedAndOneRan) {  // P9
  EXPECT_EQ(after_matrix(succeeded, succeeded), ready);
  EXPECT_EQ(after_matrix(succeeded, skipped), ready);
  EXPECT_EQ(after_matrix(ignored_failure, succeeded), ready);
  EXPECT_EQ(after_matrix(skipped, skipped), skipped);
  EXPECT_EQ(after_matrix(succeeded, failed), dependency_failed);
  EXPECT_EQ(after_matrix(skipped, timed_out), dependency_failed);
}

TEST(AModuleThatDoesNotRun, TellsOfAFailureRatherThanOfWhatDidNotRunEither) {  // P13
  for (const OnFailure mode : {OnFailure::stop, OnFailure::finish}) {
    Sketch sketch;
    sketch.definition.on_failure = mode;
    sketch.add("build"), sketch.add("test", {"build"}).targets = {{"gcc", {}}, {"clang", {}}};
    sketch.add("publish", {"test", "build"}), sketch.add("announce", {"test"});
    Told told(sketch);
    told.next();
    told.finish("build", failed);
    EXPECT_EQ(told.reason("publish"), "build failed");
    EXPECT_EQ(told.reason("announce"), "test[gcc] did not run");
  }
}

TEST(AModuleThatDoesNotRun, TellsOfTheInstanceWithItsOwnTarget) {  // P9 P13
  for (const ModuleStatus ended : {failed, skipped}) {
    Sketch sketch;
    sketch.definition.on_failure = OnFailure::finish;
    for (const char* id : {"build", "test"}) sketch.add(id).targets = {{"debug", {}}, {"release", {}}};
    sketch.definition.modules.back().needs.push_back({.on = "build"});
    Told told(sketch);
    told.next(), told.next();
    told.finish("build[debug]", ended), told.finish("build[release]", ended);
    for (const std::string target : {"[debug]", "[release]"})
      EXPECT_EQ(told.reason("test" + target),
                "build" + target + (ended == failed ? " failed" : " was skipped"));
  }
}

TEST(AModuleForFailures, RunsOnlyAfterOne) {
  for (const ModuleStatus ended : {failed, succeeded}) {
    Sketch sketch;
    sketch.definition.on_failure = OnFailure::finish;
    sketch.add("a"), sketch.add("alarm", {"a"}).needs[0].kind = NeedKind::failed;
    Told told(sketch);
    told.next();
    told.finish("a", ended);
    EXPECT_EQ(told.status("alarm"), ended == failed ? ready : skipped);
  }
}

TEST(ALock, IsHeldByOneAtATime) {  // P13
  Sketch sketch;
  sketch.add("a").locks = {"release", "db"}, sketch.add("b").locks = {"db"}, sketch.add("c");
  Told told(sketch);
  EXPECT_EQ(told.next(), "a");
  EXPECT_EQ(told.next(), "c");
  EXPECT_EQ(told.next(), "nothing");
  EXPECT_EQ(told.held_up_by("b"), "lock 'db', which a has");
  told.finish("a");
  EXPECT_EQ(told.next(), "b");
}

TEST(ALock, CostsTheSameHoweverManyWaitForIt) {  // P13; looking at all of them each time would take minutes
  constexpr int kMany = 30'000;
  Sketch sketch;
  for (int i = 0; i < kMany; ++i) sketch.add("m" + std::to_string(i)).locks = {"db"};
  Told told(sketch);
  for (int i = 0; i < kMany; ++i) {
    ASSERT_EQ(told.next(), "m" + std::to_string(i));
    ASSERT_EQ(told.next(), "nothing");
    told.finish("m" + std::to_string(i));
  }
}

// As a master knows it that takes over: of what was handed out, some has ended, and nobody has said so yet.
TEST(WhatWasTakenOver, GivesBackOnlyWhatItHasItself) {  // P13 P17
  for (const char* ended : {"a", "b"}) {
    const std::string held = ended == std::string("a") ? "b" : "a";
    Sketch sketch;
    sketch.definition.pools["pool"] = 1;
    for (const char* id : {"a", "b", "c", "d"}) sketch.add(id);
    for (const std::size_t i : {0, 1, 2}) sketch.definition.modules[i].locks = {"db"};
    for (const std::size_t i : {0, 1, 3}) sketch.definition.modules[i].pool = "pool";
    Told told(sketch);
    told.schedule.take_over(0);
    told.schedule.take_over(1);
    told.finish(ended);
    EXPECT_EQ(told.next(), "nothing");
    EXPECT_EQ(told.held_up_by("c"), "lock 'db', which " + held + " has");
    EXPECT_EQ(told.held_up_by("d"), "a place in pool 'pool'");
    told.finish(held);
    EXPECT_EQ(told.next(), "c");
    EXPECT_EQ(told.next(), "d");
  }
}

TEST(WhatWasTakenOver, IsLeftAloneUntilItHasEnded) {  // P13 P17
  Sketch sketch;
  sketch.add("a").alone = true, sketch.add("b").alone = true, sketch.add("c");
  Told told(sketch);
  told.schedule.take_over(0);
  told.schedule.take_over(1);
  told.finish("b");
  EXPECT_EQ(told.next(), "nothing");
  EXPECT_EQ(told.held_up_by("c"), "a, which has to be alone");
  told.finish("a");
  EXPECT_EQ(told.next(), "c");
}

TEST(APool, HasSoManyPlaces) {  // P13
  Sketch sketch;
  sketch.definition.pools["emulator"] = 3;
  for (const char* id : {"a", "b", "c"}) sketch.add(id).pool = "emulator";
  sketch.definition.modules[0].weight = 2;
  Told told(sketch);
  EXPECT_EQ(told.next(), "a");
  EXPECT_EQ(told.next(), "b");
  EXPECT_EQ(told.next(), "nothing");
  EXPECT_EQ(told.held_up_by("c"), "a place in pool 'emulator'");
  told.schedule.put_back(1);
  EXPECT_EQ(told.next(), "b");
  told.finish("b");
  EXPECT_EQ(told.next(), "c");
}

TEST(Schedule, KeepsForTheMasterWhatNobodyElseCanBeGiven) {  // P8 P13
  Sketch sketch;
  sketch.add("a"), sketch.add("b"), sketch.add("c").pinned = true;
  Told told(sketch);
  EXPECT_EQ(told.next(), "a");
  told.schedule.keep_here(0);
  EXPECT_EQ(told.status("a"), ready);
  const auto is_anybodys = [](const Lane& lane) { return !lane.pinned; };
  EXPECT_EQ(told.schedule.begin_next(is_anybodys), 1U);
  EXPECT_EQ(told.schedule.begin_next(is_anybodys), std::nullopt);
  EXPECT_EQ(told.next(), "a");
  EXPECT_EQ(told.next(), "c");
}

TEST(Alone, MeansWithNothingElse) {  // P13
  Sketch sketch;
  sketch.add("a"), sketch.add("alone").alone = true, sketch.add("b"), sketch.add("c", {"a"});
  Told told(sketch, {{"a", hours(1)}});
  EXPECT_EQ(told.next(), "a");
  EXPECT_EQ(told.next(), "nothing") << "b would pass the one that wants to be alone";
  told.finish("a");
  EXPECT_EQ(told.next(), "alone");
  EXPECT_EQ(told.next(), "nothing");
  told.finish("alone");
  EXPECT_EQ(told.next(), "b");
}

TEST(Schedule, LeavesOutWhatWasNotChosen) {
  Sketch sketch;
  sketch.add("a"), sketch.add("b", {"a"});
  const Graph graph = sketch.graph({.skip_modules = {"a"}});
  EXPECT_EQ(graph.size(), 2U);
  const Schedule schedule(graph);
  EXPECT_EQ(schedule.status(0), skipped);
  EXPECT_EQ(schedule.status(1), skipped);
  EXPECT_TRUE(schedule.is_over());
}

TEST(Schedule, FollowsAChainOfAnyLength) {
  Sketch sketch;
  sketch.add("m0");
  for (int i = 1; i < 50'000; ++i) sketch.add("m" + std::to_string(i), {"m" + std::to_string(i - 1)});
  Told told(sketch);
  told.next();
  told.finish("m0", skipped);
  EXPECT_TRUE(told.schedule.is_over());
}

// Any graph, any ends, in any order: what is shared is never held twice, needs come first, and it ends.
TEST(Schedule, KeepsItsPromisesWhateverHappens) {  // P13
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 dice(seed);
    const auto roll = [&](unsigned sides) { return static_cast<unsigned>(dice() % sides); };
    Sketch sketch;
    sketch.definition.on_failure = roll(2) == 0 ? OnFailure::stop : OnFailure::finish;
    sketch.definition.pools["pool"] = 2;
    const unsigned count = 2 + roll(30);
    for (unsigned i = 0; i < count; ++i) {
      ModuleSpec& spec = sketch.add("m" + std::to_string(i));
      for (unsigned other = 0; other < i; ++other) {
        if (roll(6) == 0)
          spec.needs.push_back({.on = "m" + std::to_string(other), .kind = static_cast<NeedKind>(roll(4))});
      }
      if (roll(4) == 0) spec.locks = {"lock" + std::to_string(roll(2))};
      if (roll(4) == 0) spec.pool = "pool", spec.weight = 1 + roll(2);
      spec.alone = roll(12) == 0;
      spec.always_run = roll(8) == 0;
      spec.priority = static_cast<Priority>(roll(4));
    }
    const Graph graph = sketch.graph();
    Schedule schedule(graph);
    std::vector<NodeIndex> begun;
    while (!schedule.is_over()) {
      const auto next = schedule.begin_next([](const Lane&) { return true; });
      if (next) {
        const ModuleSpec& spec = *graph[*next].spec;
        ASSERT_TRUE(!schedule.is_stopping() || spec.always_run) << "seed " << seed;
        for (const NodeIndex other : begun) {
          ASSERT_FALSE(spec.alone || graph[other].spec->alone) << "seed " << seed;
          for (const std::string& lock : spec.locks)
            ASSERT_THAT(graph[other].spec->locks, ::testing::Not(::testing::Contains(lock)))
                << "seed " << seed;
        }
        for (const GraphNeed& need : graph[*next].needs) {
          for (const NodeIndex other : need.on)
            ASSERT_TRUE(is_final(schedule.status(other))) << "seed " << seed;
        }
        begun.push_back(*next);
        std::uint32_t places = 0;
        for (const NodeIndex other : begun)
          places += graph[other].spec->pool.empty() ? 0 : graph[other].spec->weight;
        ASSERT_LE(places, 2U) << "seed " << seed;
      }
      ASSERT_FALSE(begun.empty()) << "seed " << seed << ": nothing runs and nothing may begin";
      if (next && roll(2) == 0) continue;
      const std::size_t which = roll(static_cast<unsigned>(begun.size()));
      const NodeIndex node = begun[which];
      begun.erase(begun.begin() + static_cast<std::ptrdiff_t>(which));
      static constexpr ModuleStatus kEnds[] = {succeeded, succeeded, succeeded,       succeeded,
                                               failed,    skipped,   ignored_failure, timed_out};
      if (roll(10) == 0)
        schedule.put_back(node);
      else
        schedule.finish(node, kEnds[roll(8)]);
    }
    EXPECT_EQ(schedule.begun(), 0U);
    EXPECT_EQ(schedule.take_ended().size(), graph.size());
  }
}

}  // namespace
}  // namespace baton::pipeline
