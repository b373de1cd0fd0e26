#include "engine/coordinator.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/temporary_directory.h"

namespace baton {
namespace {

CoordinatorOptions small_log() {
  CoordinatorOptions options;
  options.log.segment_bytes = 64 * 1024;
  options.log.batch_bytes = 16 * 1024;
  options.engine.digest_every = 16;
  return options;
}

std::unique_ptr<Coordinator> opened(const std::string& directory, CoordinatorOptions options = small_log()) {
  auto coordinator = Coordinator::open(directory, std::move(options));
  EXPECT_TRUE(coordinator.has_value()) << coordinator.error().message;
  return std::move(*coordinator);
}

// T3: one object holds the managers of tasks and leases and the registry of workers.
TEST(Coordinator, CarriesATaskThroughItsLife) {
  const TemporaryDirectory data;
  auto coordinator = opened(data.path());
  const auto submitted = coordinator->submit({.ns = "n", .queue = "q", .payload = Blob("work")});
  ASSERT_TRUE(submitted);
  const auto leased = coordinator->lease({.ns = "n", .queues = {"q"}, .worker = "w"});
  ASSERT_TRUE(leased && *leased);
  EXPECT_EQ((*leased)->task, submitted->task);
  EXPECT_EQ(text_of((*leased)->payload), "work");
  const auto done = coordinator->complete(
      {.ns = "n", .task = (*leased)->task, .lease = (*leased)->lease, .result = Blob("done")});
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->cancelled);
  const auto view = coordinator->get("n", submitted->task);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->state, core::TaskState::completed);
  EXPECT_EQ(text_of(*coordinator->read(view->note)), "done");
  EXPECT_TRUE(coordinator->close());
}

// T5, T65, X2: with or without a clean stop.
TEST(Coordinator, KnowsEverythingAgainAfterARestart) {
  for (const bool clean : {true, false}) {
    const TemporaryDirectory data;
    std::uint64_t digest = 0;
    TaskId last;
    {
      auto coordinator = opened(data.path());
      for (int i = 0; i < 500; ++i) {
        const auto submitted =
            coordinator->submit({.ns = "n", .queue = "q", .payload = Blob(std::string(200, 'x'))});
        ASSERT_TRUE(submitted);
        last = submitted->task;
        if (i % 3 == 0) {
          ASSERT_TRUE(coordinator->lease({.ns = "n", .queues = {"q"}, .worker = "w"}));
        }
        if (i % 100 == 99) {
          const auto made = coordinator->make_snapshot();
          ASSERT_TRUE(made) << made.error().message;
        }
      }
      ASSERT_TRUE(coordinator->inspect([&](const core::State& state) { digest = state.digest; }));
      if (clean) {
        ASSERT_TRUE(coordinator->close());
      }
    }
    auto coordinator = opened(data.path());
    EXPECT_GT(coordinator->recovery().snapshot, 0u);
    ASSERT_TRUE(coordinator->inspect([&](const core::State& state) { EXPECT_EQ(state.digest, digest); }));
    EXPECT_TRUE(coordinator->get("n", last));
    ASSERT_TRUE(coordinator->close());
  }
}

// T2: a data directory has one authority at a time.
TEST(Coordinator, RefusesADirectoryThatIsInUse) {
  const TemporaryDirectory data;
  auto first = opened(data.path());
  const auto second = Coordinator::open(data.path(), small_log());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::locked);
  EXPECT_NE(second.error().message.find("already open in this process"), std::string::npos);
  ASSERT_TRUE(first->close());
  EXPECT_TRUE(Coordinator::open(data.path(), small_log()));
}

TEST(Coordinator, AnswersClosedAfterItWasClosed) {
  const TemporaryDirectory data;
  auto coordinator = opened(data.path());
  ASSERT_TRUE(coordinator->close());
  const auto late = coordinator->submit({.ns = "n", .queue = "q"});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::closed);
  EXPECT_NE(late.error().message.find("was not taken"), std::string::npos) << late.error().message;
  EXPECT_EQ(coordinator->make_snapshot().error().code, Errc::closed);
}

// D22, T63: without close() the object goes as a process would: whoever waits learns that no answer will
// come.
TEST(Coordinator, MayGoAtAnyMoment) {
  const TemporaryDirectory data;
  for (int round = 0; round < 5; ++round) {
    CoordinatorOptions options = small_log();
    options.housekeeping.snapshot_every_bytes = 1;
    auto coordinator = opened(data.path(), options);
    std::atomic<int> unanswered = 0;
    for (int i = 0; i < 300; ++i) {
      auto counted = std::shared_ptr<void>(nullptr, [&](void*) { ++unanswered; });
      coordinator->ask(SubmitTask{.ns = "n", .queue = "q", .payload = Blob(std::string(1000, 'x'))},
                       [counted = std::move(counted)](engine::Answer) {});
    }
    std::thread snapshots([&, target = coordinator.get()] { (void)target->make_snapshot(); });
    snapshots.join();
    coordinator.reset();
    EXPECT_EQ(unanswered, 300);
  }
}

// T42, D22: an owner that does not end the process sees every later call refused, and none answered.
TEST(Coordinator, StopsAnsweringWhenTheLogFails) {
  const TemporaryDirectory data;
  CoordinatorOptions options = small_log();
  std::atomic<bool> failed = false;
  options.on_fatal = [&](const Error&) { failed = true; };
  auto coordinator = opened(data.path(), options);
  // In one step, for the next segment is being made in it; then it cannot be named.
  std::filesystem::rename(data.path() + "/wal", data.path() + "/gone");
  Result<core::Submitted> last = core::Submitted{};
  for (int i = 0; i < 1000 && last; ++i) {
    last = coordinator->submit({.ns = "n", .queue = "q", .payload = Blob(std::string(10'000, 'x'))});
  }
  ASSERT_FALSE(last);
  EXPECT_TRUE(last.error().code == Errc::closed || last.error().code == Errc::exhausted);
  EXPECT_EQ(failed, last.error().code == Errc::closed);
}

// X3: options that would make no sense are refused, not obeyed.
TEST(Coordinator, RefusesOptionsOutOfRange) {
  const TemporaryDirectory data;
  CoordinatorOptions options = small_log();
  options.engine.due_per_turn = 0;
  EXPECT_EQ(Coordinator::open(data.path(), options).error().code, Errc::invalid_request);
}

// D18: requests of many callers share flushes, and each has an outcome of its own.
TEST(Coordinator, ServesManyCallersAtOnce) {
  const TemporaryDirectory data;
  auto coordinator = opened(data.path());
  constexpr int kThreads = 8, kTasks = 50;
  std::atomic<int> completed = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kTasks; ++i) {
        EXPECT_TRUE(coordinator->submit({.ns = "n", .queue = "q", .payload = Blob(std::to_string(i))}));
        const auto leased =
            coordinator->lease({.ns = "n", .queues = {"q"}, .worker = std::to_string(thread)});
        if (!leased || !*leased) continue;
        const auto done =
            coordinator->complete({.ns = "n", .task = (*leased)->task, .lease = (*leased)->lease});
        completed += done && !done->cancelled;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(completed, kThreads * kTasks);
  const auto queues = coordinator->queues({.ns = "n"});
  EXPECT_EQ(queues->queues.front().counts[static_cast<std::size_t>(core::TaskState::completed)],
            static_cast<std::uint64_t>(kThreads * kTasks));
  EXPECT_TRUE(coordinator->close());
}

// A payload that left the cache is read from the log; one that was damaged there is an error, never empty
// bytes.
TEST(Coordinator, ReadsPayloadsBackFromTheLog) {
  const TemporaryDirectory data;
  CoordinatorOptions options = small_log();
  options.engine.cache_bytes = 0;
  auto coordinator = opened(data.path(), options);
  ASSERT_TRUE(coordinator->submit({.ns = "n", .queue = "q", .payload = Blob("from the log")}));
  const auto leased = coordinator->lease({.ns = "n", .queues = {"q"}, .worker = "w"});
  ASSERT_TRUE(leased && *leased);
  EXPECT_EQ(text_of((*leased)->payload), "from the log");
  core::BlobRef wrong = coordinator->get("n", (*leased)->task)->payload;
  wrong.hash ^= 1;
  EXPECT_EQ(coordinator->read(wrong).error().code, Errc::corrupt);
  EXPECT_TRUE(coordinator->close());
}

// A directory in which the payload of the only waiting task lies in a segment that a start does not read.
struct OldPayload {
  OldPayload() {
    auto coordinator = opened(data.path());
    task = coordinator->submit({.ns = "n", .queue = "q", .payload = Blob("a very old payload")})->task;
    path = data.path() + "/wal/" + "0000000000000001.seg";
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(
            coordinator->submit({.ns = "n", .queue = "other", .payload = Blob(std::string(12 << 10, 'x'))}));
      }
      EXPECT_TRUE(coordinator->make_snapshot());
    }
    EXPECT_TRUE(coordinator->close());
  }
  void damage() const {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    const auto at = content.find("very old");
    ASSERT_NE(at, std::string::npos);
    file.seekp(static_cast<std::streamoff>(at)) << 'V';
  }

  const TemporaryDirectory data;
  TaskId task;
  std::string path;
};

// A task nobody can work on is put off, so that it is still there when the directory has been restored.
TEST(Coordinator, PutsOffATaskWhosePayloadCannotBeRead) {
  for (const bool removed : {false, true}) {
    const OldPayload old;
    if (removed) {
      std::filesystem::remove(old.path);
    } else {
      old.damage();
    }
    std::vector<std::string> notes;
    CoordinatorOptions options = small_log();
    options.on_note = [&](const std::string& note) { notes.push_back(note); };
    auto coordinator = opened(old.data.path(), options);
    const auto lease = [&] { return coordinator->lease({.ns = "n", .queues = {"q"}, .worker = "w"}); };
    const auto refused = lease();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::corrupt) << refused.error().message;
    for (const std::string& word : {core::to_text(old.task), std::string("offset"), std::string("backup")}) {
      EXPECT_NE(refused.error().message.find(word), std::string::npos) << refused.error().message;
    }
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find(core::to_text(old.task)), std::string::npos) << notes[0];
    for (int again = 0; again < 30; ++again) {
      const auto nothing = lease();
      ASSERT_TRUE(nothing) << nothing.error().message;
      EXPECT_FALSE(*nothing);
    }
    const auto view = coordinator->get("n", old.task);
    ASSERT_TRUE(view);
    EXPECT_EQ(view->state, core::TaskState::waiting);
    EXPECT_EQ(view->attempt, 1u);
    EXPECT_TRUE(coordinator->close());
  }
}

// E4, X3: finished tasks beyond what is kept are forgotten by recorded entries, and the rest can be paged
// through.
TEST(Coordinator, ListsTasksPageByPage) {
  const TemporaryDirectory data;
  auto coordinator = opened(data.path());
  for (int i = 0; i < 25; ++i) ASSERT_TRUE(coordinator->submit({.ns = "n", .queue = "q"}));
  ASSERT_TRUE(coordinator->submit({.ns = "other", .queue = "q"}));
  std::size_t seen = 0;
  core::Lsn from = 0;
  do {
    const auto page = coordinator->list({.ns = "n", .from = from, .count_max = 10});
    ASSERT_TRUE(page);
    seen += page->tasks.size();
    from = page->next;
  } while (from != 0);
  EXPECT_EQ(seen, 25u);
  EXPECT_TRUE(coordinator->close());
}

// X3
TEST(Coordinator, RefusesAPageOfNoOrTooManyTasks) {
  const TemporaryDirectory data;
  auto coordinator = opened(data.path());
  for (const core::ListTasks& fine : {core::ListTasks{.ns = "n", .count_max = 1},
                                      core::ListTasks{.ns = "n", .count_max = core::kListTasksMax}}) {
    EXPECT_TRUE(coordinator->list(fine));
  }
  for (const core::ListTasks& odd :
       {core::ListTasks{.ns = "n", .count_max = 0},
        core::ListTasks{.ns = "n", .count_max = core::kListTasksMax + 1}, core::ListTasks{.ns = ""},
        core::ListTasks{.ns = "two words"}, core::ListTasks{.ns = "n", .queue = "two words"}}) {
    const auto page = coordinator->list(odd);
    ASSERT_FALSE(page);
    EXPECT_EQ(page.error().code, Errc::invalid_request);
  }
  EXPECT_TRUE(coordinator->close());
}

// A limit of the log is a refusal for the client, not the end of the process.
TEST(Coordinator, TakesOnlyPayloadsThatFitItsLog) {
  const TemporaryDirectory data;
  auto coordinator = opened(data.path());  // with batches of 16 KiB
  const auto fits =
      coordinator->submit({.ns = "n", .queue = "q", .payload = Blob(std::string(12 << 10, 'x'))});
  EXPECT_TRUE(fits);
  const auto over =
      coordinator->submit({.ns = "n", .queue = "q", .payload = Blob(std::string((12 << 10) + 1, 'x'))});
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, Errc::too_large);
  CoordinatorOptions tiny = small_log();
  tiny.log.batch_bytes = 8 * 1024;
  const auto refused = Coordinator::open(data.path() + "/tiny", tiny);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_request);
}

}  // namespace
}  // namespace baton
