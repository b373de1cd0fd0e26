// What is left where a thread does not get a piece of memory: each piece in turn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <functional>
#include <new>
#include <optional>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/distributed_checkpoint.h"
#include "tests/checkpoint/faulty_storage.h"
#include "tests/checkpoint/no_threads.h"
#include "tests/checkpoint/short_of_memory.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;

// Without each piece of memory that `action` asks for; `look` is called after each time.
void without_each_piece(const std::function<void()>& action, const std::function<void()>& look) {
  bool was_short = true;
  for (std::size_t pieces = 0; was_short; ++pieces) {
    {
      const ShortOfMemory memory(pieces);
      try {
        action();
      } catch (const std::bad_alloc&) {
      }
      was_short = memory.has_happened();
    }
    SCOPED_TRACE("after " + std::to_string(pieces) + " pieces");
    look();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

std::ptrdiff_t open_files() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

// C10
TEST(AFileWithoutMemory, IsNeitherLeftOpenNorThere) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  ASSERT_TRUE(storage->put_if_absent("there", bytes_of("x")));
  const std::ptrdiff_t before = open_files();
  without_each_piece([&] { (void)storage->create("new", 3 << 20); },
                     [&] {
                       ASSERT_EQ(open_files(), before);
                       ASSERT_FALSE(fs::exists(directory.path() + "/store/new"));
                     });
  without_each_piece([&] { (void)storage->open("there"); }, [&] { ASSERT_EQ(open_files(), before); });
}

// While there is one, no file of this process can be written.
class NoWrites {
 public:
  NoWrites() {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit none{0, before_.rlim_max};
    heard_ = ::signal(SIGXFSZ, SIG_IGN);
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  }
  ~NoWrites() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, heard_);
  }
  NoWrites(const NoWrites&) = delete;
  NoWrites& operator=(const NoWrites&) = delete;

 private:
  rlimit before_{};
  sighandler_t heard_ = nullptr;
};

// C10: that something is amiss with it may be what there is no memory to say
TEST(AFileWithoutMemory, GoesAlsoIfItCouldNotBeWritten) {
  const TemporaryDirectory directory;
  const auto storage = *LocalStorage::open_directory(directory.path(), IoMode::buffered);
  auto writer = *storage->create("new", 3 << 20);
  const NoWrites full;
  ASSERT_TRUE(writer->append(Bytes(2 << 20)));
  {
    const ShortOfMemory memory(0);
    writer.reset();
  }
  EXPECT_FALSE(fs::exists(directory.path() + "/new"));
}

// C9: what it threw on a thread of its own would end the process; here it is the caller's, who lacks memory
TEST(ASaveWithoutMemory, InTheBackgroundHasAnEnd) {
  const TemporaryDirectory directory;
  const auto storage = *LocalStorage::open_directory(directory.path(), IoMode::buffered);
  as_ranks(1, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, *storage);
    const State state({whole_tensor("w", Dtype::u8, {8})}, 1);
    const ShardData mine = state.shard();
    const SaveOptions options{.custom = {{"run", "a text that no string holds by itself"}}};
    const Error why{Errc::invalid_request, "the state makes no sense", {}};
    const NoThreads none;
    without_each_piece([&] { (void)checkpoint.save_async(1, mine, options); },
                       [&] {
                         (void)checkpoint.close();
                         fs::remove_all(directory.path() + "/" + step_prefix(1));
                         const auto next = checkpoint.refuse_async(2, why, {});  // which is soon done
                         ASSERT_TRUE(next);
                         ASSERT_THAT(said(next->wait({})), HasSubstr(why.message));
                       });
    ASSERT_TRUE(checkpoint.save_async(3, mine, options));
    EXPECT_EQ(said(checkpoint.close()), "fine");
  });
}

// C9: never silent
TEST(ASaveWithoutMemory, ThatFailedIsToldOfAtTheEnd) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  FaultyStorage full(*storage, [&](FaultyStorage::Call call, const std::string&) -> Status {
    if (call != FaultyStorage::Call::create) return {};
    return failure(Errc::no_space, "there is no space left on the disk");
  });
  as_ranks(1, [&](Collective& collective) {
    std::optional<DistributedCheckpoint> checkpoint(std::in_place, collective, full);
    const State state({whole_tensor("w", Dtype::u8, {8})}, 1);
    ASSERT_TRUE(checkpoint->save_async(1, state.shard(), {})->is_done_within(minutes(1)));
    ::testing::internal::CaptureStderr();
    {
      const ShortOfMemory memory(0);
      checkpoint.reset();
    }
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a checkpoint was not saved"));
  });
}

// C9: a turn that nobody ends would be waited for by every later save
TEST(ASaveWithoutMemory, IsNotInTheWayOfLaterOnes) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  as_ranks(1, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, *storage);
    const State state({whole_tensor("w", Dtype::u8, {8})}, 1);
    const ShardData mine = state.shard();
    ASSERT_TRUE(checkpoint.save_async(1, mine, {}) && checkpoint.close());
    without_each_piece([&] { (void)checkpoint.save_async(2, mine, {}); },
                       [&] {
                         (void)checkpoint.close();
                         ASSERT_TRUE(checkpoint.save_async(3, mine, {}));
                         ASSERT_EQ(said(checkpoint.close()), "fine");
                       });
  });
}

// C9: what is there was not a failure
TEST(ASaveWithoutMemory, ToTellItsDecisionSaysWhetherThereIsACheckpoint) {
  const State state({whole_tensor("w", Dtype::u8, {8})}, 1);
  bool was_short = true;
  for (std::size_t pieces = 0; was_short; ++pieces) {
    SCOPED_TRACE("after " + std::to_string(pieces) + " pieces");
    const TemporaryDirectory directory;
    const auto storage = storage_in(directory);
    const auto alone = *InProcessGroup(1).join(0);
    std::optional<ShortOfMemory> memory;
    FaultyStorage watched(*storage, [&](FaultyStorage::Call call, const std::string& path) -> Status {
      // It is decided, and rank 0 looks at what there is.
      if (call == FaultyStorage::Call::get && path.ends_with(".manifest") && !memory) memory.emplace(pieces);
      return {};
    });
    bool is_saved = false;
    try {
      is_saved = DistributedCheckpoint(*alone, watched).save(1, state.shard(), {}).has_value();
    } catch (const std::bad_alloc&) {
    }
    was_short = memory->has_happened();
    memory.reset();
    ASSERT_EQ(find_checkpoint(*storage, "latest").has_value(), is_saved);
  }
}

// A rank that is short of memory from the first step of a save to the next one, unless that ends before.
class ShortOnceReady final : public Collective {
 public:
  ShortOnceReady(Collective& real, std::size_t pieces, std::optional<ShortOfMemory>& memory)
      : real_(real), pieces_(pieces), memory_(memory) {}
  Rank rank() const override { return real_.rank(); }
  Rank world_size() const override { return real_.world_size(); }
  std::uint64_t generation() const override { return real_.generation(); }
  Result<std::unique_ptr<Collective>> stream(const std::string& name) override { return real_.stream(name); }

 protected:
  Result<std::vector<Bytes>> meet(const Operation& operation, const Contribution& mine,
                                  const Call& call) override {
    memory_.reset();
    if (operation.kind == OperationKind::gather) return real_.gather(call, mine, operation.root);
    if (operation.kind == OperationKind::broadcast) {
      auto told = real_.broadcast(call, mine, operation.root);
      if (!told) return std::unexpected(told.error());
      return std::vector<Bytes>{*std::move(told)};
    }
    auto all = real_.all_gather(call, mine);
    memory_.emplace(pieces_);
    return all;
  }

 private:
  Collective& real_;
  const std::size_t pieces_;
  std::optional<ShortOfMemory>& memory_;
};

// C2: the others have a plan by then, and would wait for what this one has written
TEST(ASaveWithoutMemory, ToPlanItIsHeardOfByAllRanks) {
  bool was_short = true;
  for (std::size_t pieces = 0; was_short; ++pieces) {
    SCOPED_TRACE("after " + std::to_string(pieces) + " pieces");
    const TemporaryDirectory directory;
    const auto storage = storage_in(directory);
    std::optional<ShortOfMemory> memory;
    FaultyStorage watched(*storage, [&](FaultyStorage::Call call, const std::string& path) -> Status {
      if (call != FaultyStorage::Call::create || path.find("r00001") == path.npos) return {};
      was_short = memory->has_happened();
      memory.reset();
      return {};
    });
    std::vector<std::string> heard(2, "it threw");
    as_ranks(2, [&](Collective& collective) {
      const State state({rows("w", Dtype::u8, {8}, collective.rank(), 2)}, 1);
      ShortOnceReady short_one(collective, pieces, memory);
      Collective& mine = collective.rank() == 1 ? short_one : collective;
      try {
        heard[collective.rank()] =
            said(DistributedCheckpoint(mine, watched).save(1, state.shard(), {.deadline = seconds(10)}));
      } catch (const std::bad_alloc&) {
      }
    });
    // A sort does without.
    ASSERT_THAT(heard, AnyOf(Each("fine"), Each(HasSubstr("EXHAUSTED: rank 1: there is not enough memory"))));
  }
}

}  // namespace
}  // namespace baton::checkpoint
