// Trouble with the storage: everybody hears the same, soon, and what was good before still loads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <new>
#include <stop_token>

#include "checkpoint/retrying_storage.h"
#include "tests/checkpoint/collective_subject.h"
#include "tests/checkpoint/faulty_storage.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

namespace fs = std::filesystem;
using Call = FaultyStorage::Call;

struct Saved {
  TemporaryDirectory directory;
  std::unique_ptr<LocalStorage> storage = storage_in(directory);
};

// So much of each rank that two threads read it.
std::vector<TensorInfo> large(Rank rank, Rank ranks) {
  return {rows("w", Dtype::u64, {80, 1 << 17}, rank, ranks)};
}

// C10: whichever call fails, however: everybody hears it, nothing is committed, the one before loads
TEST(Trouble, WhicheverCallOfASaveFailsTheCheckpointBeforeStays) {
  for (const Call failing : {Call::create, Call::append, Call::finish, Call::put}) {
    for (const Errc code : {Errc::no_space, Errc::permission_denied, Errc::io_failed}) {
      for (const std::string_view rank : {"r00000", "r00002"}) {
        if (failing == Call::put && rank != "r00000") continue;
        Saved saved;
        ASSERT_THAT(save(*saved.storage, 3, 1, 1), Each("fine"));
        FaultyStorage faulty(*saved.storage, [&](Call call, const std::string& path) -> Status {
          const bool is_meant =
              call == failing && (call == Call::put || path.find(rank) != std::string::npos);
          return is_meant ? Status(failure(code, "trouble with " + path)) : Status{};
        });
        const auto heard = save(faulty, 3, 2, 2);
        EXPECT_THAT(heard, Each(AllOf(HasSubstr(std::string(word(code))), HasSubstr("trouble with step-2"))));
        EXPECT_THAT(load(*saved.storage, 2, "", 1), Each("fine"));
      }
    }
  }
}

// C6: the path is the same on every machine, and the disk is not
TEST(Trouble, OfRanksThatSaveToDisksOfTheirOwnIsHeardOfBeforeACommit) {
  const Saved disks[2];
  ASSERT_THAT(save(*disks[0].storage, 2, 1, 1), Each("fine"));
  std::vector<std::string> heard(2);
  as_ranks(2, [&](Collective& ranks) {
    const State state(model(ranks.rank(), 2), 2);
    heard[ranks.rank()] =
        said(CheckpointCoordinator(ranks, *disks[ranks.rank()].storage)
                 .coordinate_save("step-2", [&]() -> Result<ShardData> { return state.shard(); }, {}));
  });
  EXPECT_THAT(heard, Each(AllOf(HasSubstr("CONFLICT: rank 0: rank 1 has written step-2/"),
                                HasSubstr("and here there is no " + disks[0].directory.path()),
                                HasSubstr("all ranks have to save to the same place"))));
  EXPECT_THAT(load(*disks[0].storage, 2, "", 1), Each("fine"));
  EXPECT_THAT(load(*disks[1].storage, 2, "", 1), Each(HasSubstr("NOT_FOUND")));
}

// C4, C8: each rank reads a large manifest itself, and one that does not see it must not begin anew
TEST(Trouble, OfARankThatDoesNotSeeWhatWasChosenIsDamage) {
  const Saved disks[2];
  const SaveOptions options{.custom = {{"large", std::string(2 << 20, 'x')}}};
  ASSERT_THAT(save(*disks[0].storage, 2, 1, 1, model, options), Each("fine"));
  std::vector<std::string> heard(2);
  for (const bool fall_back : {false, true}) {
    as_ranks(2, [&](Collective& ranks) {
      State state(model(ranks.rank(), 2));
      CheckpointLoader loader(ranks, *disks[ranks.rank()].storage);
      heard[ranks.rank()] = said(loader.coordinate_load("latest", state.targets(), {.fall_back = fall_back}));
    });
    EXPECT_THAT(heard, Each(HasSubstr("CORRUPT"))) << fall_back;
  }
}

// C6: on a network file system a listing may be older than a file
TEST(Trouble, IsNoneIfAListingIsLate) {
  Saved saved;
  std::atomic<int> late = 0;
  FaultyStorage slow(*saved.storage, [&](Call call, const std::string& path) -> Status {
    const bool is_of_the_attempt = call == Call::list && path.find("/a0001-") != path.npos;
    if (!is_of_the_attempt) return {};
    ++late;
    return failure(Errc::not_found, "nothing is seen yet");
  });
  EXPECT_THAT(save(slow, 2, 1, 1), Each("fine"));
  EXPECT_GT(late, 0);
  EXPECT_THAT(load(*saved.storage, 2, "", 1), Each("fine"));
}

// C4: what rank 0 returns was read from the storage; that it cannot be read at once is no end of it
TEST(Trouble, WithReadingTheManifestBackIsHeardOfByAll) {
  Saved saved;
  std::atomic<int> left = 1;
  FaultyStorage faulty(*saved.storage, [&](Call call, const std::string& path) -> Status {
    if (call == Call::get && path.ends_with(".manifest") && left-- > 0)
      return failure(Errc::io_failed, "trouble with " + path);
    return {};
  });
  EXPECT_THAT(save(faulty, 2, 1, 1), Each("fine"));
  EXPECT_LT(left, 0);
  left = 1000;
  EXPECT_THAT(save(faulty, 2, 2, 2), Each(HasSubstr("trouble with step-2")));
}

// C2, C6: a rank that is cut off from the others and from the storage cannot know what they decide
TEST(Trouble, ThatHidesWhatWasDecidedIsToldAsThat) {
  Saved saved;
  std::stop_source cut_off;
  std::latch has_given_up(1);
  FaultyStorage deciding(*saved.storage, [&](Call call, const std::string& path) -> Status {
    if (call != Call::put || !path.ends_with(".manifest")) return {};
    cut_off.request_stop();
    has_given_up.wait();
    return {};
  });
  FaultyStorage away(*saved.storage, [&](Call call, const std::string& path) -> Status {
    if (call != Call::put || !path.ends_with(".manifest")) return {};
    has_given_up.count_down();
    return failure(Errc::unavailable, "the storage is away");
  });
  std::vector<std::string> heard(2);
  as_ranks(2, [&](Collective& ranks) {
    const State state(model(ranks.rank(), 2), 1);
    SaveOptions options;
    if (ranks.rank() == 1) options.stop = cut_off.get_token();
    heard[ranks.rank()] =
        said(CheckpointCoordinator(ranks, ranks.rank() == 0 ? deciding : away)
                 .coordinate_save("step-1", [&]() -> Result<ShardData> { return state.shard(); }, options));
  });
  EXPECT_EQ(heard[0], "fine");
  EXPECT_THAT(heard[1], AllOf(HasSubstr("CLOSED"), HasSubstr("the storage is away"),
                              HasSubstr("`baton checkpoint ls` shows what became of it")));
}

// C10: what may pass is tried again, inside the storage, with pauses that grow up to a limit
TEST(Trouble, ThatPassesIsWaitedFor) {
  Saved saved;
  std::atomic<int> left = 3;
  auto stumbling =
      std::make_unique<FaultyStorage>(*saved.storage, [&](Call call, const std::string&) -> Status {
        if (call == Call::put && left-- > 0) return failure(Errc::io_failed, "stumbled");
        return {};
      });
  std::vector<std::int64_t> pauses;
  RetryingStorage patient(std::move(stumbling),
                          {.tries = 4,
                           .first_pause = milliseconds(100),
                           .longest_pause = milliseconds(300),
                           .pause = [&](Duration pause) { pauses.push_back(pause.ms); }});
  EXPECT_THAT(save(patient, 2, 1, 1), Each("fine"));
  EXPECT_THAT(pauses, ::testing::ElementsAre(100, 200, 300));
  EXPECT_THAT(load(patient, 2, "", 1), Each("fine"));

  left = 1000;
  EXPECT_THAT(save(patient, 1, 2, 2), Each(HasSubstr("stumbled")));
  pauses.clear();
  auto full = std::make_unique<FaultyStorage>(*saved.storage, [&](Call call, const std::string&) -> Status {
    if (call == Call::create) return failure(Errc::no_space, "disk full");
    return {};
  });
  RetryingStorage in_vain(std::move(full), {.pause = [&](Duration pause) { pauses.push_back(pause.ms); }});
  EXPECT_THAT(save(in_vain, 1, 3, 3), Each(HasSubstr("NO_SPACE")));
  EXPECT_THAT(pauses, ::testing::IsEmpty());
}

// C10: a read goes on where it got to, in a file that is opened anew
TEST(Trouble, InTheMiddleOfAReadIsWaitedForToo) {
  Saved saved;
  const std::uint64_t bytes = 5 * kBlockBytes + 100;
  auto writer = saved.storage->create("file", bytes);
  ASSERT_TRUE((*writer)->append(Bytes(bytes, std::byte{7})) && (*writer)->finish());
  int opened = 0;
  int pieces = 0;
  auto stumbling =
      std::make_unique<FaultyStorage>(*saved.storage, [&](Call call, const std::string&) -> Status {
        if (call == Call::open) ++opened;
        if (call == Call::piece && ++pieces % 3 == 0) return failure(Errc::io_failed, "stumbled");
        return {};
      });
  RetryingStorage patient(std::move(stumbling), {.pause = [](Duration) {}});
  const auto reader = patient.open("file");
  ASSERT_TRUE(reader);
  const std::vector<ByteRange> wanted{
      {10, 20}, {kBlockBytes - 1, 2}, {2 * kBlockBytes, bytes - 2 * kBlockBytes}};
  std::vector<ByteRange> came;
  const auto take = [&](std::uint64_t offset, ByteView piece) -> Status {
    came.push_back({offset, piece.size()});
    return {};
  };
  EXPECT_EQ(said((*reader)->read(wanted, take)), "fine");
  const std::vector<ByteRange> whole{{10, 20},
                                     {kBlockBytes - 1, 1},
                                     {kBlockBytes, 1},
                                     {2 * kBlockBytes, kBlockBytes},
                                     {3 * kBlockBytes, kBlockBytes},
                                     {4 * kBlockBytes, kBlockBytes},
                                     {5 * kBlockBytes, 100}};
  EXPECT_EQ(came, whole);  // each once
  EXPECT_EQ(opened, 4);

  const auto refuse = [](std::uint64_t, ByteView) -> Status { return failure(Errc::io_failed, "no more"); };
  EXPECT_EQ(said((*patient.open("file"))->read(wanted, refuse)), "IO_FAILED: no more");
  EXPECT_EQ(opened, 5);  // for whoever takes it, it is not tried again
}

TEST(Trouble, WhicheverCallOfALoadFailsEverybodyHearsIt) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 3, 1, 1), Each("fine"));
  for (const Call failing : {Call::open, Call::read, Call::get}) {
    FaultyStorage faulty(*saved.storage, [&](Call call, const std::string& path) -> Status {
      const bool is_meant =
          call == failing && (call == Call::get || path.find("r00001") != std::string::npos);
      return is_meant ? Status(failure(Errc::io_failed, "trouble with " + path)) : Status{};
    });
    EXPECT_THAT(load(faulty, 2, "", 1), Each(AnyOf(HasSubstr("IO_FAILED"), HasSubstr("CORRUPT"))));
  }
}

// C2: a rank that runs out of memory is heard of, and no process ends
TEST(Trouble, WithMemoryInALoadIsHeardOfByAll) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 2, 1, 1, large), Each("fine"));
  for (const Call failing : {Call::list, Call::get, Call::open, Call::read, Call::piece}) {
    FaultyStorage faulty(*saved.storage, [&](Call call, const std::string& path) -> Status {
      const bool is_of_rank_0 = failing == Call::list || failing == Call::get;
      if (call == failing && (is_of_rank_0 || path.find("r00001") != path.npos)) throw std::bad_alloc();
      return {};
    });
    EXPECT_THAT(load(faulty, 2, "", 1, large, {.fall_back = true}),
                Each(AllOf(HasSubstr("EXHAUSTED"), HasSubstr("rank "))));
  }
  EXPECT_THAT(load(*saved.storage, 2, "", 1, large), Each("fine"));
}

// C2: also before it has said what it has to save
TEST(Trouble, WithMemoryBeforeASaveIsHeardOfByAll) {
  Saved saved;
  as_ranks(2, [&](Collective& ranks) {
    const auto local_save = [&]() -> Result<ShardData> {
      if (ranks.rank() == 1) throw std::bad_alloc();
      return ShardData();
    };
    EXPECT_THAT(said(CheckpointCoordinator(ranks, *saved.storage).coordinate_save("step-1", local_save, {})),
                AllOf(HasSubstr("EXHAUSTED"), HasSubstr("rank 1")));
  });
}

// C9: what cannot be read where it would be referred to is written again
TEST(Trouble, WithMemoryInAnIncrementalSaveIsNoEndOfIt) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 2, 1, 1, large), Each("fine"));
  for (const Call failing : {Call::open, Call::read, Call::piece}) {
    FaultyStorage faulty(*saved.storage, [&](Call call, const std::string& path) -> Status {
      if (call == failing && path.find("r00001") != path.npos) throw std::bad_alloc();
      return {};
    });
    EXPECT_THAT(save(faulty, 2, 2, 1, large, {.incremental = true}), Each("fine"));
  }
  EXPECT_THAT(load(*saved.storage, 2, "", 1, large), Each("fine"));
}

// C10: a real full disk, read-only directory and missing place, by the system's own words
TEST(Trouble, OfTheSystemIsNamedWithTheFile) {
  const auto full = LocalStorage::open_directory("/dev/full/store");
  EXPECT_FALSE(full);
  EXPECT_THAT(said(full), HasSubstr("/dev/full"));
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  const auto huge = storage->create("step-1/a0001-x/r00000.safetensors", std::uint64_t{1} << 60);
  EXPECT_THAT(said(huge),
              AnyOf(HasSubstr("NO_SPACE"), HasSubstr("IO_FAILED")));  // EFBIG, where files are limited
  EXPECT_FALSE(fs::exists(directory.path() + "/store/step-1/a0001-x/r00000.safetensors"));
}

TEST(Trouble, ANameThatIsTakenIsNotWrittenOver) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_TRUE(*storage->put_if_absent("decision", bytes_of("first")));
  EXPECT_FALSE(*storage->put_if_absent("decision", bytes_of("second")));
  EXPECT_TRUE(*storage->put_if_absent("decision", bytes_of("first")));
  EXPECT_EQ(text_of(*storage->get("decision")), "first");
  {
    auto writer = storage->create("file", 3);
    ASSERT_TRUE(writer);
    ASSERT_TRUE((*writer)->append(bytes_of("abc")));
    ASSERT_TRUE((*writer)->finish());
  }
  EXPECT_THAT(said(storage->create("file", 3)), HasSubstr("CONFLICT"));
  {
    auto unfinished = storage->create("unfinished", 3);
    ASSERT_TRUE(unfinished);
  }
  EXPECT_THAT(said(storage->open("unfinished")), HasSubstr("NOT_FOUND"));
}

// C2, C10
TEST(Trouble, OfASlowDiskIsToldWithItsRankAndProgress) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  constexpr int kPiecesBeforeItIsSlow = 4;
  std::latch is_slow(1);
  std::latch others_have_heard(1);
  int pieces = 0;
  FaultyStorage slow(*storage, [&](Call call, const std::string& path) -> Status {
    const bool is_slow_one = path.ends_with("r00001.safetensors");
    if (call == Call::append && is_slow_one && ++pieces == kPiecesBeforeItIsSlow) {
      is_slow.count_down();
      others_have_heard.wait();
    }
    if (call == Call::finish && !is_slow_one) is_slow.wait();
    return {};
  });
  const auto large = [](Rank rank, Rank ranks) {
    return std::vector{rows("w", Dtype::u8, {8, 1 << 20}, rank, ranks)};
  };
  as_ranks(2, [&](Collective& collective) {
    collective.tell_doing("epoch 3");
    const State state(large(collective.rank(), 2), 1);
    const auto saved = CheckpointCoordinator(collective, slow)
                           .coordinate_save("step-1", [&]() -> Result<ShardData> { return state.shard(); },
                                            {.deadline = seconds(2)});
    EXPECT_THAT(
        said(saved),
        AllOf(HasSubstr("DEADLINE_EXCEEDED"), HasSubstr("save step-1 written"), HasSubstr("missing: rank 1"),
              HasSubstr("doing epoch 3, write of step-1/a0001-"), HasSubstr("of 4 MiB")));
    if (collective.rank() == 0) others_have_heard.count_down();
  });
}

// C2: a save says how far it has got, and wipes away nothing that the program has said
TEST(Trouble, IsToldWithWhatTheProgramSaidBeforeASave) {
  for (const CollectiveSubject& subject : collective_subjects()) {
    SCOPED_TRACE(subject.name);
    Saved saved;
    const auto group = subject.make(2);
    std::latch is_told(1);
    on_every_rank(*group, 2, [&](Collective& collective) {
      collective.tell_doing("epoch 3");
      const State state(model(collective.rank(), 2), 1);
      ASSERT_EQ(
          said(CheckpointCoordinator(collective, *saved.storage)
                   .coordinate_save("step-1", [&]() -> Result<ShardData> { return state.shard(); }, {})),
          "fine");
      if (collective.rank() == 1) return is_told.wait();
      EXPECT_THAT(said(collective.barrier({"next", seconds(1)})), HasSubstr(", doing epoch 3)"));
      is_told.count_down();
    });
  }
}

}  // namespace
}  // namespace baton::checkpoint
