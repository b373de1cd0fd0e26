// Saves in the background.
#include "checkpoint/async_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <new>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>

#include "checkpoint/catalog.h"
#include "checkpoint/checkpoint_search.h"
#include "checkpoint/distributed_checkpoint.h"
#include "tests/checkpoint/collective_subject.h"
#include "tests/checkpoint/faulty_storage.h"
#include "tests/checkpoint/no_threads.h"
#include "tests/checkpoint/world.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using Call = FaultyStorage::Call;

constexpr Duration kLong = minutes(5);

// C9: what is saved is what was there when save_async was called
TEST(AsyncSave, KeepsWhatWasThereWhenItWasAsked) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  as_ranks(2, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, *storage);
    State state(model(collective.rank(), 2), 1);
    const auto first = checkpoint.save_async(1, state.shard(), {});
    ASSERT_TRUE(first);
    state = State(model(collective.rank(), 2), 2);  // the next training step
    const auto second = checkpoint.save_async(2, state.shard(), {});
    ASSERT_TRUE(second);
    EXPECT_TRUE(first->is_done());
    EXPECT_EQ(said(first->wait(kLong)), "fine");
    EXPECT_EQ(said(checkpoint.close()), "fine");
    EXPECT_TRUE(second->is_done());
  });
  EXPECT_THAT(load(*storage, 3, "1", 1), Each("fine"));
  EXPECT_THAT(load(*storage, 3, "2", 2), Each("fine"));
}

// C9: the training loop does not wait for the disk
TEST(AsyncSave, ReturnsBeforeAnythingIsWritten) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::latch go_on(1);
  FaultyStorage blocked(*storage, [&](Call call, const std::string&) -> Status {
    if (call == Call::create) go_on.wait();
    return {};
  });
  as_ranks(1, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, blocked);
    const State state(model(0, 1), 1);
    const auto ticket = checkpoint.save_async(1, state.shard(), {});
    ASSERT_TRUE(ticket);
    EXPECT_FALSE(ticket->is_done());
    EXPECT_THAT(said(ticket->wait(milliseconds(1))), HasSubstr("DEADLINE_EXCEEDED"));
    go_on.count_down();
    EXPECT_EQ(said(ticket->wait(kLong)), "fine");
  });
}

// C2, C9: nobody waits for a rank that cannot save
TEST(AsyncSave, OfARankThatHasNothingToSaveFailsForAll) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  as_ranks(2, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, *storage);
    const State state(model(collective.rank(), 2), 1);
    const Error why{Errc::invalid_request, "the state makes no sense", {}};
    const auto ticket = collective.rank() == 1 ? checkpoint.refuse_async(1, why, {})
                                               : checkpoint.save_async(1, state.shard(), {});
    ASSERT_TRUE(ticket);
    EXPECT_THAT(said(ticket->wait(kLong)), HasSubstr("rank 1: the state makes no sense"));
    EXPECT_FALSE(ticket->is_committed());
    const auto next = checkpoint.save_async(2, state.shard(), {});
    ASSERT_TRUE(next);
    EXPECT_EQ(said(next->wait(kLong)), "fine");
    EXPECT_TRUE(next->is_committed());
  });
}

// C9: never silent
TEST(AsyncSave, AFailureIsToldByTheTicketOrElseByTheNextCall) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::atomic<bool> is_full = true;
  FaultyStorage full(*storage, [&](Call call, const std::string&) -> Status {
    if (call == Call::create && is_full) return failure(Errc::no_space, "disk full");
    return {};
  });
  as_ranks(2, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, full);
    const State state(model(collective.rank(), 2), 1);
    const auto unheard = checkpoint.save_async(0, state.shard(), {});
    EXPECT_TRUE(unheard->is_done_within(kLong));  // which does not say how it ended
    EXPECT_THAT(said(checkpoint.close()), HasSubstr("disk full"));
    const auto heard = checkpoint.save_async(1, state.shard(), {});
    EXPECT_THAT(said(heard->wait(kLong)), HasSubstr("disk full"));
    ASSERT_TRUE(checkpoint.save_async(2, state.shard(), {}));  // of the one before, somebody has heard
    EXPECT_THAT(said(checkpoint.save_async(3, state.shard(), {})),
                AllOf(HasSubstr("NO_SPACE"), HasSubstr("the save before this one failed")));
    ASSERT_TRUE(checkpoint.save_async(4, state.shard(), {}));
    EXPECT_THAT(said(checkpoint.close()), HasSubstr("disk full"));
    EXPECT_EQ(said(checkpoint.close()), "fine");
    ASSERT_TRUE(collective.barrier({"repair"}));
    is_full = false;
    ASSERT_TRUE(collective.barrier({"repaired"}));
    ASSERT_TRUE(checkpoint.save_async(5, state.shard(), {}));
    EXPECT_EQ(said(checkpoint.close()), "fine");
  });
  EXPECT_THAT(load(*storage, 2, "", 1), Each("fine"));
}

// C9: whoever refuses has an error of its own to raise, and says nothing of the one before
TEST(AsyncSave, AFailureThatNobodyHasHeardOfOutlastsARefusal) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::atomic<bool> is_full = true;
  FaultyStorage full(*storage, [&](Call call, const std::string&) -> Status {
    if (call == Call::create && is_full) return failure(Errc::no_space, "disk full");
    return {};
  });
  as_ranks(1, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, full);
    const State state(model(0, 1), 1);
    const Error why{Errc::invalid_request, "the state makes no sense", {}};
    ASSERT_TRUE(checkpoint.save_async(1, state.shard(), {}));
    for (const std::uint64_t step : {2, 3}) {
      const auto refused = checkpoint.refuse_async(step, why, {});
      ASSERT_TRUE(refused) << said(refused);
      EXPECT_THAT(said(refused->wait(kLong)), HasSubstr("the state makes no sense"));
    }
    EXPECT_THAT(said(checkpoint.save_async(4, state.shard(), {})),
                AllOf(HasSubstr("NO_SPACE"), HasSubstr("the save before this one failed")));
    is_full = false;
    ASSERT_TRUE(checkpoint.save_async(5, state.shard(), {}));
    EXPECT_EQ(said(checkpoint.close()), "fine");
  });
}

// C2: a rank that is told of an old failure does not leave the others waiting
TEST(AsyncSave, AFailureThatOneRankHasNotHeardOfEndsTheNextSaveForAll) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::atomic<bool> is_full = true;
  FaultyStorage full(*storage, [&](Call call, const std::string&) -> Status {
    if (call == Call::create && is_full) return failure(Errc::no_space, "disk full");
    return {};
  });
  as_ranks(2, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, full);
    const State state(model(collective.rank(), 2), 1);
    const auto first = checkpoint.save_async(1, state.shard(), {});
    if (collective.rank() == 0) {
      EXPECT_THAT(said(first->wait(kLong)), HasSubstr("disk full"));
      is_full = false;
      const auto second = checkpoint.save_async(2, state.shard(), {});
      EXPECT_THAT(said(second->wait(kLong)), AllOf(HasSubstr("rank 1"), HasSubstr("the save before")));
    } else {
      EXPECT_THAT(said(checkpoint.save_async(2, state.shard(), {})), HasSubstr("the save before this one"));
    }
    EXPECT_EQ(said(checkpoint.save(3, state.shard(), {})), "fine");
  });
}

TEST(AsyncSave, OneThatIsCancelledEndsOnAllRanks) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::latch cancelled(1);
  FaultyStorage blocked(*storage, [&](Call call, const std::string&) -> Status {
    if (call == Call::append) cancelled.wait();
    return {};
  });
  as_ranks(2, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, blocked);
    const State state(model(collective.rank(), 2), 1);
    const auto ticket = checkpoint.save_async(1, state.shard(), {});
    if (collective.rank() == 1) {
      ticket->cancel();
      cancelled.count_down();
    }
    EXPECT_THAT(said(ticket->wait(kLong)), AllOf(HasSubstr("CLOSED"), HasSubstr("rank 1")));
  });
  EXPECT_FALSE(find_checkpoint(*storage, "latest"));
}

// C9: also where nobody is waited for, and nothing takes long
TEST(AsyncSave, OneThatIsCancelledIsNotMadeThoughAllHaveCome) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::stop_source stop;
  stop.request_stop();
  as_ranks(1, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, *storage);
    EXPECT_THAT(said(checkpoint.save(1, {.objects = {{"x", "1"}}}, {.stop = stop.get_token()})),
                HasSubstr("CLOSED"));
  });
  EXPECT_FALSE(find_checkpoint(*storage, "latest"));
}

// C9: whoever interrupts the call goes on, and changes what it would have copied
TEST(AsyncSave, OneThatIsStoppedBeforeItsTurnIsNotMadeOfWhatIsThereLater) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::latch stopped(1);
  FaultyStorage blocked(*storage, [&](Call call, const std::string&) -> Status {
    if (call == Call::append) stopped.wait();
    return {};
  });
  as_ranks(2, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, blocked);
    const State state(model(collective.rank(), 2), 1);
    ASSERT_TRUE(checkpoint.save_async(1, state.shard(), {}));
    std::stop_source interrupt;
    std::jthread interrupts;
    if (collective.rank() == 1)
      interrupts = std::jthread([&] { interrupt.request_stop(), stopped.count_down(); });
    const auto second = checkpoint.save_async(2, state.shard(), {.stop = interrupt.get_token()});
    ASSERT_TRUE(second);
    EXPECT_THAT(said(second->wait(kLong)), AllOf(HasSubstr("CLOSED"), HasSubstr("rank 1")));
  });
  EXPECT_EQ(find_checkpoint(*storage, "latest")->training.step, 1U);
}

// C9: nobody may wait for what a call says that was stopped
TEST(AsyncSave, AFailureThatNobodyHasHeardOfOutlastsACallThatIsStopped) {
  for (const bool is_in_background : {true, false}) {
    SCOPED_TRACE(is_in_background);
    const TemporaryDirectory directory;
    const auto storage = storage_in(directory);
    std::latch stopped(1);
    FaultyStorage full(*storage, [&](Call call, const std::string& path) -> Status {
      if (call != Call::create || !path.starts_with(step_prefix(1))) return {};
      stopped.wait();
      return failure(Errc::no_space, "disk full");
    });
    as_ranks(1, [&](Collective& collective) {
      DistributedCheckpoint checkpoint(collective, full);
      const State state(model(0, 1), 1);
      ASSERT_TRUE(checkpoint.save_async(1, state.shard(), {}));
      std::stop_source interrupt;
      const std::jthread interrupts([&] { interrupt.request_stop(), stopped.count_down(); });
      const SaveOptions options{.stop = interrupt.get_token()};
      if (is_in_background)
        (void)checkpoint.save_async(2, state.shard(), options);
      else
        (void)checkpoint.save(2, state.shard(), options);
      EXPECT_THAT(said(checkpoint.save_async(3, state.shard(), {})),
                  AllOf(HasSubstr("NO_SPACE"), HasSubstr("the save before this one failed: disk full")));
      EXPECT_EQ(said(checkpoint.save(4, state.shard(), {})), "fine");
    });
  }
}

// C9: a job may save to any number of places
TEST(AsyncSave, MemoryThatIsLetGoComesBackAndNoFailureGoesWithIt) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  std::latch go_on(1);
  FaultyStorage faulty(*storage, [&](Call call, const std::string& path) -> Status {
    if (call == Call::create && path.starts_with(step_prefix(1))) go_on.wait();
    if (call == Call::create && path.starts_with(step_prefix(3))) return failure(Errc::no_space, "disk full");
    return {};
  });
  as_ranks(1, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, faulty);
    EXPECT_TRUE(checkpoint.let_memory_go());
    const State state(model(0, 1), 1);
    const auto first = checkpoint.save_async(1, state.shard(), {});
    EXPECT_FALSE(checkpoint.let_memory_go());
    go_on.count_down();
    EXPECT_EQ(said(first->wait(kLong)), "fine");
    EXPECT_TRUE(checkpoint.let_memory_go());
    EXPECT_EQ(said(checkpoint.save_async(2, state.shard(), {})->wait(kLong)), "fine");

    EXPECT_TRUE(checkpoint.save_async(3, state.shard(), {})->is_done_within(kLong));
    EXPECT_FALSE(checkpoint.let_memory_go());
    EXPECT_THAT(said(checkpoint.close()), HasSubstr("disk full"));
    EXPECT_TRUE(checkpoint.let_memory_go());
    EXPECT_THAT(said(checkpoint.save_async(3, state.shard(), {})->wait(kLong)), HasSubstr("disk full"));
    EXPECT_TRUE(checkpoint.let_memory_go());
  });
  EXPECT_THAT(load(*storage, 1, "1", 1), Each("fine"));
  EXPECT_THAT(load(*storage, 1, "2", 1), Each("fine"));
}

// C9: one group, two storages
TEST(AsyncSave, ToTwoPlacesIsInTheOrderOfTheCalls) {
  for (const CollectiveSubject& subject : collective_subjects()) {
    SCOPED_TRACE(subject.name);
    const TemporaryDirectory directory;
    const auto first_storage = *LocalStorage::open_directory(directory.path() + "/first");
    const auto second_storage = *LocalStorage::open_directory(directory.path() + "/second");
    std::latch both_begun(2);
    FaultyStorage slow(*first_storage, [&](Call call, const std::string&) -> Status {
      if (call == Call::create) both_begun.wait();
      return {};
    });
    const auto group = subject.make(2);
    on_every_rank(*group, 2, [&](Collective& collective) {
      DistributedCheckpoint first(collective, slow);
      DistributedCheckpoint second(collective, *second_storage);
      const State state(model(collective.rank(), 2), 1);
      const auto to_first = first.save_async(1, state.shard(), {});
      const auto to_second = second.save_async(1, state.shard(), {});
      both_begun.count_down();
      ASSERT_TRUE(to_first && to_second);
      EXPECT_EQ(said(to_second->wait(kLong)), "fine");
      EXPECT_TRUE(to_first->is_committed());
    });
    EXPECT_THAT(load(*first_storage, 1, "", 1), Each("fine"));
    EXPECT_THAT(load(*second_storage, 1, "", 1), Each("fine"));
  }
}

// C9: nobody is left waiting, neither another rank nor a later save
TEST(AsyncSave, WithoutAThreadToBeHadTheCallerSaves) {
  const TemporaryDirectory directory;
  const auto storage = *LocalStorage::open_directory(directory.path(), IoMode::buffered);
  const auto large = [](Rank rank, Rank ranks) {
    return std::vector{rows("w", Dtype::u8, {64, 1 << 20}, rank, ranks)};
  };
  as_ranks(2, [&](Collective& collective) {
    DistributedCheckpoint checkpoint(collective, *storage);
    const State state(large(collective.rank(), 2), 1);
    std::optional<NoThreads> none;
    if (collective.rank() == 1) {
      ASSERT_TRUE(checkpoint.save_async(1, state.shard(), {}));
    }
    ASSERT_TRUE(collective.barrier({"one has its thread"}));
    if (collective.rank() == 0) {
      none.emplace();
      EXPECT_THROW(std::jthread([] {}), std::system_error);
      const auto saved = checkpoint.save_async(1, state.shard(), {});
      ASSERT_TRUE(saved);
      EXPECT_EQ(said(saved->wait({})), "fine");
    }
    ASSERT_TRUE(collective.barrier({"saved"}));
    State loaded(large(0, 1));
    EXPECT_EQ(said(checkpoint.load("1", loaded.targets(), {})), "fine");
    EXPECT_EQ(loaded, State(large(0, 1), 1));
    ASSERT_TRUE(collective.barrier({"loaded"}));
    none.reset();
    ASSERT_TRUE(collective.barrier({"there are threads again"}));
    ASSERT_TRUE(checkpoint.save_async(2, state.shard(), {}));
    EXPECT_EQ(said(checkpoint.close()), "fine");
  });
}

// C2, C9: what ends a save ends no process, and no other rank waits for it
TEST(AsyncSave, AThrownErrorIsTheFailureOfTheSaveOnAllRanks) {
  for (const Call at : {Call::create, Call::append, Call::put}) {
    const TemporaryDirectory directory;
    const auto storage = storage_in(directory);
    std::atomic<bool> is_short_of_memory = true;
    const std::string whose =
        at == Call::put ? ".manifest" : "r00001";  // of one rank, and the other hears it
    FaultyStorage full(*storage, [&](Call call, const std::string& path) -> Status {
      if (call == at && is_short_of_memory && path.find(whose) != path.npos) throw std::bad_alloc();
      return {};
    });
    as_ranks(2, [&](Collective& collective) {
      DistributedCheckpoint checkpoint(collective, full);
      const State state(model(collective.rank(), 2), 1);
      const auto ticket = checkpoint.save_async(1, state.shard(), {.deadline = kLong});
      ASSERT_TRUE(ticket);
      EXPECT_THAT(said(ticket->wait(kLong)),
                  AllOf(HasSubstr("EXHAUSTED"), HasSubstr(at == Call::put ? "rank 0" : "rank 1")));
      ASSERT_TRUE(collective.barrier({"there is memory again"}));
      is_short_of_memory = false;
      ASSERT_TRUE(checkpoint.save_async(2, state.shard(), {}));
      EXPECT_EQ(said(checkpoint.close()), "fine");
    });
    EXPECT_THAT(load(*storage, 2, "", 1), Each("fine"));
  }
}

// C9
TEST(AsyncSave, AStateThatIsTooLargeIsRefusedOnAllRanks) {
  const TemporaryDirectory directory;
  const auto storage = storage_in(directory);
  as_ranks(2, [&](Collective& collective) {
    const std::uint64_t limit = collective.rank() == 0 ? 100 : 99;
    DistributedCheckpoint checkpoint(collective, *storage, {.staging_bytes_max = limit});
    const State state({rows("w", Dtype::u8, {200}, collective.rank(), 2)}, 1);
    const auto ticket = checkpoint.save_async(1, state.shard(), {});
    ASSERT_TRUE(ticket);
    EXPECT_THAT(said(ticket->wait(kLong)), AllOf(HasSubstr("TOO_LARGE"), HasSubstr("rank 1"),
                                                 HasSubstr("save it in the foreground, or allow more")));
    EXPECT_EQ(said(checkpoint.save(1, state.shard(), {})), "fine");
  });
}

}  // namespace
}  // namespace baton::checkpoint
