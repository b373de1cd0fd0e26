// How the newest checkpoint is found: by looking at no more than is needed, since at a service every look is
// a request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "checkpoint/atomic_commit_protocol.h"
#include "checkpoint/checkpoint_search.h"
#include "tests/checkpoint/faulty_storage.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Call = FaultyStorage::Call;

std::vector<TensorInfo> small(Rank rank, Rank ranks) { return {rows("w", Dtype::u8, {4, 4}, rank, ranks)}; }

// A store in which the looks are written down.
struct Watched {
  TemporaryDirectory directory;
  std::unique_ptr<LocalStorage> real = storage_in(directory);
  std::vector<std::string> listed, read;
  std::function<Status(Call call, const std::string& path)> fault;
  FaultyStorage storage{*real, [this](Call call, const std::string& path) -> Status {
                          if (call == Call::list) listed.push_back(path);
                          if (call == Call::get) read.push_back(path);
                          return fault ? fault(call, path) : Status{};
                        }};

  Watched() { EXPECT_THAT(save(*real, 2, 1, 1, small), Each("fine")); }

  // The content of step 1 under another name, as a checkpoint that refers to the files of another one.
  CheckpointId add(const std::string& prefix, std::uint64_t step,
                   const std::string& attempt = "a0001-00000000000000ad") const {
    CheckpointMetadata metadata = *find_checkpoint(*real, "step-1");
    metadata.id = {prefix, attempt};
    metadata.training.step = step;
    put(metadata.id, MetadataSerializer::serialize(metadata));
    return metadata.id;
  }
  // Without waiting for the disk, since there are many.
  void put(const CheckpointId& id, const std::string& manifest) const {
    std::filesystem::create_directories(directory.path() + "/store/" + id.prefix);
    std::ofstream(directory.path() + "/store/" + manifest_path(id)) << manifest;
  }
  void remove(const std::string& prefix) const {
    std::filesystem::remove_all(directory.path() + "/store/" + prefix);
  }
  void add_steps(std::uint64_t count) const {
    for (std::uint64_t step = 2; step <= count; ++step) add(step_prefix(step), step);
  }
};

// C8, C12: all ranks together look once
TEST(Latest, OfHundredsIsFoundByTwoListingsAndOneRead) {
  Watched watched;
  watched.add_steps(300);
  EXPECT_THAT(load(watched.storage, 3, "", 1, small), Each("fine"));
  EXPECT_THAT(watched.listed, ElementsAre("", step_prefix(300)));
  EXPECT_THAT(watched.read, ElementsAre(HasSubstr(step_prefix(300))));
}

// C8
TEST(Latest, ThatIsNotWholeCostsOneMoreLookForEachThatIsPassedOver) {
  Watched watched;
  watched.add_steps(100);
  watched.put({step_prefix(101), "a0001-00000000000000ad"}, "damaged");
  watched.put({step_prefix(102), "a0001-00000000000000ad"}, "damaged");
  EXPECT_THAT(load(watched.storage, 2, "", 1, small), Each(HasSubstr("CORRUPT")));
  watched.listed.clear();
  watched.read.clear();
  EXPECT_THAT(load(watched.storage, 2, "", 1, small, {.fall_back = true}), Each("fine"));
  EXPECT_THAT(watched.listed, ElementsAre("", step_prefix(102), step_prefix(101), step_prefix(100)));
  EXPECT_THAT(watched.read, ElementsAre(HasSubstr(step_prefix(102)), HasSubstr(step_prefix(101)),
                                        HasSubstr(step_prefix(100))));
}

// C12: a save that was given up is none, and one that is under way not yet
TEST(Latest, IsNoneThatWasNotCommitted) {
  Watched watched;
  const CheckpointId good = watched.add(step_prefix(2), 2);
  const CheckpointId given_up{step_prefix(3), "a0001-00000000000000ad"};
  watched.put(given_up, MetadataSerializer::serialize_abort(given_up, "somebody left"));
  ASSERT_TRUE(*watched.real->put_if_absent(step_prefix(4) + "/a0001-00000000000000ad/base", {}));
  EXPECT_EQ(find_checkpoint(watched.storage, "latest")->id, good);
}

// C12: of a name that tells no step, the manifest does
TEST(Latest, IsToldByTheStepWhateverTheNameIs) {
  Watched watched;
  watched.add_steps(20);
  watched.add("best", 15);
  const CheckpointId good = watched.add("good", 30);
  EXPECT_EQ(find_checkpoint(watched.storage, "latest")->id, good);

  const auto search = CheckpointSearch::begin(watched.storage, "latest");
  std::vector<std::string> found;
  for (auto copy = *search; auto attempt = copy.next();) found.push_back(attempt->id.prefix);
  ASSERT_EQ(found.size(), 22U);
  EXPECT_EQ(found[0], "good");
  EXPECT_EQ(found[6], step_prefix(15));
  EXPECT_EQ(found[7], "best");
  EXPECT_EQ(found[8], step_prefix(14));
}

// C12
TEST(Latest, AndTheListAgreeOnTheOrder) {
  Watched watched;
  for (const char* prefix : {"step-3", "step-0000000003", "best", "zero", "step-12"}) watched.add(prefix, 3);
  watched.put({"torn", "a0001-00000000000000ad"}, "damaged");
  auto search = CheckpointSearch::begin(watched.storage, "latest");
  std::vector<CheckpointId> found;
  while (auto attempt = search->next()) found.insert(found.begin(), attempt->id);
  std::vector<CheckpointId> listed;
  const auto attempts = *list_attempts(*watched.real);
  for (const Attempt& attempt : attempts) listed.push_back(attempt.id);
  EXPECT_EQ(found, listed);
}

// C12: a step as a number
TEST(ASearchForAStep, LooksAtThatStepAndAtNamesThatTellNone) {
  Watched watched;
  watched.add_steps(50);
  watched.add("best", 17);
  watched.add("other", 18);
  EXPECT_EQ(find_checkpoint(watched.storage, "17")->id.prefix, step_prefix(17));
  EXPECT_THAT(watched.read, ElementsAre(HasSubstr("best"), HasSubstr("other"), HasSubstr(step_prefix(17))));
  EXPECT_EQ(find_checkpoint(watched.storage, "51").error().code, Errc::not_found);
}

// C12: the number of an attempt may outgrow its four digits
TEST(ANameThatIsSavedUnderOften, MeansItsNewestAttempt) {
  Watched watched;
  watched.add("best", 7, "a9999-00000000000000ad");
  const auto next = new_attempt(watched.storage, "best");
  ASSERT_THAT(next->attempt, ::testing::StartsWith("a10000-"));
  watched.add("best", 7, next->attempt);
  EXPECT_EQ(find_checkpoint(watched.storage, "best")->id, *next);
  EXPECT_EQ(find_checkpoint(watched.storage, "latest")->id, *next);
  EXPECT_EQ(list_attempts(watched.storage)->back().id, *next);
}

// C12: a run that was begun anew is at an earlier step. Of the others nothing is read
TEST(ANameThatIsSavedUnderOften, MeansItsNewestAttemptWhateverTheStep) {
  Watched watched;
  watched.add("best", 20);
  watched.add("best", 30, "a0002-00000000000000ad");
  const CheckpointId newest = watched.add("best", 5, "a0003-00000000000000ad");
  EXPECT_EQ(find_checkpoint(watched.storage, "best")->id, newest);
  EXPECT_THAT(watched.listed, ElementsAre("best"));
  EXPECT_THAT(watched.read, ElementsAre(manifest_path(newest)));
  EXPECT_EQ(find_checkpoint(watched.storage, "latest")->training.step, 30U);
}

// C12: whoever prunes keeps a newer one
TEST(Latest, ThatIsPrunedWhileItIsLookedForGivesWayToItsSuccessor) {
  for (const Call at : {Call::list, Call::get}) {
    Watched watched;
    watched.add_steps(2);
    watched.fault = [&](Call call, const std::string& path) -> Status {
      if (call != at || !path.starts_with(step_prefix(2))) return {};
      watched.add(step_prefix(3), 3);
      watched.remove(step_prefix(2));
      return {};
    };
    as_ranks(2, [&](Collective& collective) {
      State state(small(collective.rank(), 2));
      const auto loaded =
          CheckpointLoader(collective, watched.storage).coordinate_load("", state.targets(), {});
      ASSERT_TRUE(loaded) << said(loaded);
      EXPECT_EQ(loaded->metadata.training.step, 3U);
    });
  }
}

// C12: however fast somebody saves and prunes
TEST(Latest, IsLookedForAnewAFewTimesAndNoMore) {
  Watched watched;
  watched.add_steps(2);
  std::uint64_t newest = 2;
  watched.fault = [&](Call call, const std::string& path) -> Status {
    if (call != Call::get || !path.starts_with(step_prefix(newest))) return {};
    watched.remove(step_prefix(newest));
    ++newest;
    watched.add(step_prefix(newest), newest);
    return {};
  };
  EXPECT_EQ(find_checkpoint(watched.storage, "latest")->training.step, 1U);
  EXPECT_EQ(std::ranges::count(watched.listed, ""), 4);
}

// C8: a directory that cannot be listed is damage like any other
TEST(Latest, WhoseDirectoryCannotBeListedIsPassedOverWhenAskedTo) {
  Watched watched;
  watched.add_steps(3);
  watched.fault = [](Call call, const std::string& path) -> Status {
    if (call == Call::list && path == step_prefix(3)) return failure(Errc::io_failed, path + ": broken");
    return {};
  };
  EXPECT_THAT(load(watched.storage, 2, "", 1, small),
              Each(AllOf(HasSubstr("IO_FAILED"), HasSubstr(step_prefix(3)))));
  as_ranks(2, [&](Collective& collective) {
    State state(small(collective.rank(), 2));
    const auto loaded = CheckpointLoader(collective, watched.storage)
                            .coordinate_load("", state.targets(), {.fall_back = true});
    ASSERT_TRUE(loaded) << said(loaded);
    EXPECT_EQ(loaded->metadata.training.step, 2U);
    EXPECT_THAT(loaded->report.passed_over, ElementsAre(HasSubstr("broken")));
  });
}

// C8: a disk that cannot tell what lies there must not make the newest checkpoint disappear
TEST(Latest, IsNotTakenForMissingWhenItCannotBeLookedAt) {
  Watched watched;
  std::filesystem::create_symlink("step-2", watched.directory.path() + "/store/step-2");  // leads to itself
  EXPECT_THAT(load(watched.storage, 2, "", 1, small, {.fall_back = true}),
              Each(AllOf(HasSubstr("IO_FAILED"), HasSubstr("step-2"))));
}

// C8: nobody goes back to an older one because the newest is out of reach for a moment
TEST(Latest, ThatIsOutOfReachIsNotPassedOver) {
  Watched watched;
  watched.add_steps(3);
  watched.fault = [](Call call, const std::string&) -> Status {
    if (call == Call::get) return failure(Errc::unavailable, "the service is away");
    return {};
  };
  EXPECT_THAT(load(watched.storage, 2, "", 1, small, {.fall_back = true}),
              Each(AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("the service is away"))));
}

// C12
TEST(Save, UnderTheNameOfAnotherStepIsRefused) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  as_ranks(2, [&](Collective& collective) {
    const State state(small(collective.rank(), 2), 1);
    const auto save_as = [&](const std::string& prefix) {
      return said(CheckpointCoordinator(collective, *storage)
                      .coordinate_save(prefix, [&]() -> Result<ShardData> { return state.shard(); },
                                       {.training = {.step = 8}}));
    };
    EXPECT_THAT(save_as("step-7"),
                AllOf(HasSubstr("INVALID_REQUEST"), HasSubstr("step-7"), HasSubstr(step_prefix(8))));
    EXPECT_EQ(save_as("step-8"), "fine");
    EXPECT_EQ(save_as("best"), "fine");
  });
}

// C12: it would never be found by its name. One that is there is no less a checkpoint
TEST(Save, UnderANameThatMeansAnotherIsRefused) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  as_ranks(2, [&](Collective& collective) {
    const State state(small(collective.rank(), 2), 1);
    for (const std::string name : {"latest", "17", "18446744073709551616"})
      EXPECT_THAT(said(CheckpointCoordinator(collective, *storage)
                           .coordinate_save(name, [&]() -> Result<ShardData> { return state.shard(); }, {})),
                  AllOf(HasSubstr("INVALID_REQUEST"), HasSubstr("latest"), HasSubstr("only digits")));
  });
  const CheckpointId old{"17", "a0001-00000000000000ad"};
  ASSERT_TRUE(AtomicCommitProtocol(*storage).commit({.id = old, .world_size = 1}));
  EXPECT_EQ(find_checkpoint(*storage, to_text(old))->id, old);
  EXPECT_EQ(list_attempts(*storage)->size(), 1U);
}

}  // namespace
}  // namespace baton::checkpoint
