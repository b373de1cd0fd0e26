// `baton log ...` beside a coordinator that writes, makes snapshots and removes segments all the while.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

#include "core/apply.h"
#include "engine/coordinator.h"
#include "engine/recovery.h"
#include "log/posix_disk.h"
#include "tests/crash/child.h"
#include "tests/temporary_directory.h"

namespace baton::crash {
namespace {

// A coordinator that never rests, and the digest of its state after each entry.
class Busy {
 public:
  explicit Busy(const std::string& directory) {
    CoordinatorOptions options;
    options.log = {.segment_bytes = 96 << 10, .batch_bytes = 16 << 10};
    options.housekeeping.snapshot_every_bytes = 192 << 10;
    options.engine.digest_every = 64;
    options.engine.observer = [this](const core::Event& event, const core::Stamp& stamp) {
      const std::lock_guard lock(mutex_);
      core::apply(mirror_, event, stamp);
      digests_.push_back(mirror_.digest);
    };
    coordinator_ = std::move(Coordinator::open(directory, options).value());
    for (int i = 0; i < 3; ++i) threads_.emplace_back([this, i] { live(i); });
    while (coordinator_->flushes() < 50) std::this_thread::yield();
  }
  ~Busy() { stop(); }

  void stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  std::uint64_t digest(core::Lsn lsn) {
    const std::lock_guard lock(mutex_);
    return lsn == 0 || lsn > digests_.size() ? 0 : digests_[lsn - 1];
  }

 private:
  // Some tasks stay, so that old segments are kept for their payloads; the rest comes and goes.
  void live(int number) {
    const std::string queue = "q" + std::to_string(number);
    for (int round = 0; !stop_; ++round) {
      const std::string text(static_cast<std::size_t>(100 + round % 7 * 900), 'x');
      const bool stays = round % 40 == 0 && round < 1000;
      if (stays) {
        ASSERT_TRUE(
            coordinator_->submit({.ns = "n", .queue = "stays", .payload = Blob(std::string(12 << 10, 's'))}));
      }
      ASSERT_TRUE(coordinator_->submit({.ns = "n", .queue = queue, .payload = Blob(text)}));
      auto leased = coordinator_->lease({.ns = "n", .queues = {queue}, .worker = "w"});
      ASSERT_TRUE(leased && *leased);
      ASSERT_TRUE(coordinator_->complete({.ns = "n", .task = (*leased)->task, .lease = (*leased)->lease}));
      if (round % 16 != 0) continue;
      ASSERT_TRUE(coordinator_->purge({.ns = "n", .queue = queue}));
    }
  }

  std::mutex mutex_;
  core::State mirror_;
  std::vector<std::uint64_t> digests_;
  std::unique_ptr<Coordinator> coordinator_;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

class ADirectoryInUse : public testing::Test {
 protected:
  Ran baton(std::vector<std::string> words) {
    words.insert(words.begin(), {BATON_PROGRAM, "log"});
    return run({.command = std::move(words)});
  }
  std::string data() const { return temporary_.path() + "/data"; }

  TemporaryDirectory temporary_;
};

TEST_F(ADirectoryInUse, IsNotCalledDamaged) {
  const Busy busy(data());
  for (int round = 0; round < 60; ++round) {
    for (const char* command : {"verify", "stat", "dump"}) {
      const Ran ran = baton({command, data()});
      ASSERT_EQ(ran.exit.code, 0) << command << " in round " << round << ": " << ran.errors
                                  << (ran.lines.empty() ? "" : ran.lines.front());
    }
  }
  const Ran ran = baton({"verify", data()});
  std::string said;
  for (const std::string& line : ran.lines) said += line + "\n";
  EXPECT_NE(said.find("in use by process " + std::to_string(getpid())), std::string::npos) << said;
}

TEST_F(ADirectoryInUse, CanBeBackedUpToAPrefixOfItsHistory) {
  Busy busy(data());
  for (int round = 0; round < 6; ++round) {
    const std::string copy = temporary_.path() + "/copy" + std::to_string(round);
    const Ran ran = baton({"backup", data(), copy});
    ASSERT_EQ(ran.exit.code, 0) << "in round " << round << ": " << ran.errors;
    const std::string restored = copy + "-restored";
    ASSERT_EQ(baton({"restore", copy, restored}).exit.code, 0);
    auto disk = std::move(log::PosixDisk::open_directory(restored).value());
    const auto recovered =
        engine::recover(*disk, {.log = {.segment_bytes = 96 << 10, .batch_bytes = 16 << 10}});
    ASSERT_TRUE(recovered) << recovered.error().message;
    EXPECT_EQ(recovered->state.digest, busy.digest(recovered->state.last));
    std::filesystem::remove_all(copy);
    std::filesystem::remove_all(restored);
  }
}

}  // namespace
}  // namespace baton::crash
