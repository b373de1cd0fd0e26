#include "engine/coordinator.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

namespace baton {
namespace {

class TemporaryDirectory {
 public:
  TemporaryDirectory() { BATON_CHECK(mkdtemp(path_.data()) != nullptr); }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/baton-coordinator-XXXXXX";
};

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
