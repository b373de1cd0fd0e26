// Damage and trouble: everything is noticed, everybody hears the same, and what was good before still loads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/checkpoint_validator.h"
#include "checkpoint/retrying_storage.h"
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

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

struct Saved {
  TemporaryDirectory directory;
  std::unique_ptr<LocalStorage> storage =
      *LocalStorage::open_directory(directory.path() + "/store", IoMode::buffered);
  fs::path path_of(const ShardMetadata& shard) const { return directory.path() + "/store/" + shard.path; }
};

std::vector<TensorInfo> two_small(Rank rank, Rank ranks) {
  return {rows("left", Dtype::u8, {4, 8}, rank, ranks), rows("right", Dtype::f32, {2, 4}, rank, ranks)};
}

// C8: every single-bit flip of every file of a checkpoint, and where it is
TEST(Damage, EverySingleBitOfAShardIsNoticedAndLocated) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 1, 1, 1, two_small), Each("fine"));
  const CheckpointMetadata metadata = *find_checkpoint(*saved.storage, "latest");
  const ShardMetadata& shard = metadata.shards[0];
  const std::string good = read_file(saved.path_of(shard));
  std::fstream file(saved.path_of(shard), std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::size_t at, char byte) {
    file.seekp(static_cast<std::streamoff>(at)).put(byte).flush();
  };
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    const std::size_t at = bit / 8;
    put(at, static_cast<char>(good[at] ^ (1 << bit % 8)));
    const auto result = CheckpointValidator::verify(*saved.storage, metadata, {});
    ASSERT_EQ(result.errors.size(), 1U) << bit;
    ASSERT_THAT(result.errors[0], HasSubstr(shard.path));
    for (const TensorMetadata& tensor : shard.tensors) {
      const bool is_hit = at >= tensor.begin && at < tensor.begin + tensor.bytes;
      ASSERT_EQ(result.errors[0].find('"' + tensor.info.name + '"') != std::string::npos, is_hit)
          << bit << result.errors[0];
    }
    put(at, good[at]);
  }
  EXPECT_TRUE(CheckpointValidator::verify(*saved.storage, metadata, {}).is_valid());
}

// C8
TEST(Damage, EverySingleBitOfAManifestIsNoticed) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 1, 1, 1, two_small), Each("fine"));
  const Bytes good = *saved.storage->get(manifest_path(find_checkpoint(*saved.storage, "latest")->id));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    const auto parsed = MetadataSerializer::parse(text_of(bad), "it");
    ASSERT_FALSE(parsed) << bit;
    ASSERT_EQ(parsed.error().code, Errc::corrupt) << bit;
  }
}

// C8
TEST(Damage, AShardThatIsCutExtendedSwappedOrGoneIsNamed) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 2, 1, 1, two_small), Each("fine"));
  const CheckpointMetadata metadata = *find_checkpoint(*saved.storage, "latest");
  const fs::path first = saved.path_of(metadata.shards[0]);
  const fs::path second = saved.path_of(metadata.shards[1]);
  const std::string good = read_file(first);
  const auto complaint = AllOf(HasSubstr("CORRUPT"), HasSubstr(metadata.shards[0].path));

  write_file(first, good.substr(0, good.size() - 1));
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small), Each(complaint));
  write_file(first, good + "x");
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small), Each(complaint));
  write_file(first, read_file(second));
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small), Each(complaint));
  fs::remove(first);
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small), Each(complaint));
  write_file(first, good);
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small), Each("fine"));
}

// C8: all ranks together, though only one of them met the damage
TEST(Damage, AllRanksFallBackTogetherToTheNewestGoodOne) {
  Saved saved;
  for (std::uint64_t step = 1; step <= 4; ++step)
    ASSERT_THAT(save(*saved.storage, 2, step, step, two_small), Each("fine"));
  const CheckpointMetadata newest = *find_checkpoint(*saved.storage, "4");
  const fs::path shard = saved.path_of(newest.shards[1]);
  std::string bad = read_file(shard);
  bad.back() ^= 1;
  write_file(shard, bad);
  const fs::path manifest =
      saved.directory.path() + "/store/" + manifest_path(find_checkpoint(*saved.storage, "3")->id);
  write_file(manifest, read_file(manifest).substr(1));

  EXPECT_THAT(load(*saved.storage, 2, "", 4, two_small), Each(HasSubstr("CORRUPT")));
  EXPECT_THAT(load(*saved.storage, 2, "", 2, two_small, {.fall_back = true}), Each("fine"));
  as_ranks(2, [&](Collective& collective) {
    State state(two_small(collective.rank(), 2));
    const auto loaded = CheckpointLoader(collective, *saved.storage)
                            .coordinate_load("", state.targets(), {.fall_back = true});
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->report.passed_over.size(), 2U);
    EXPECT_EQ(loaded->metadata.training.step, 2U);
  });
}

TEST(Damage, WhenNothingIsWholeThatIsSaid) {
  Saved saved;
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small, {.fall_back = true}), Each(HasSubstr("NOT_FOUND")));
  ASSERT_THAT(save(*saved.storage, 2, 1, 1, two_small), Each("fine"));
  fs::remove(saved.path_of(find_checkpoint(*saved.storage, "latest")->shards[0]));
  EXPECT_THAT(
      load(*saved.storage, 2, "", 1, two_small, {.fall_back = true}),
      Each(AllOf(HasSubstr("NOT_FOUND"), HasSubstr("no checkpoint is whole"), HasSubstr("is missing"))));
}

TEST(Damage, AManifestOfANewerFormatIsNotGuessedAt) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 1, 1, 1, two_small), Each("fine"));
  CheckpointMetadata newer = *find_checkpoint(*saved.storage, "latest");
  newer.major = kFormatMajor + 1;
  newer.id = {"step-2", "a0001-00000000000000ad"};
  ASSERT_TRUE(
      *saved.storage->put_if_absent(manifest_path(newer.id), bytes_of(MetadataSerializer::serialize(newer))));
  EXPECT_THAT(load(*saved.storage, 1, "", 1, two_small),
              Each(AllOf(HasSubstr("UNSUPPORTED_VERSION"), HasSubstr("use a newer one"))));
  EXPECT_THAT(load(*saved.storage, 1, "", 1, two_small, {.fall_back = true}), Each("fine"));
}

// C8: somebody copied files about
TEST(Damage, AManifestOfAnotherCheckpointIsNoneOfThisOne) {
  Saved saved;
  ASSERT_THAT(save(*saved.storage, 1, 1, 1, two_small), Each("fine"));
  const CheckpointId real = find_checkpoint(*saved.storage, "latest")->id;
  const CheckpointId copied{"step-2", real.attempt};
  ASSERT_TRUE(*saved.storage->put_if_absent(manifest_path(copied), *saved.storage->get(manifest_path(real))));
  EXPECT_THAT(load(*saved.storage, 2, "step-2", 1, two_small),
              Each(AllOf(HasSubstr("CORRUPT"),
                         HasSubstr(manifest_path(copied) + " is the manifest of " + to_text(real)))));
  EXPECT_THAT(load(*saved.storage, 2, "", 1, two_small, {.fall_back = true}), Each("fine"));
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

}  // namespace
}  // namespace baton::checkpoint
