#include "log/file_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <semaphore>

#include "log/posix_disk.h"
#include "log/recovery.h"
#include "tests/temporary_directory.h"

namespace baton::log {
namespace {

constexpr Options kSmall{.segment_bytes = 64 << 10, .batch_bytes = 16 << 10};

// Stands in for the loop: sleeps until the flusher wakes it.
class Loop {
 public:
  void wake() {
    const std::lock_guard lock(mutex_);
    ++wakes_;
    changed_.notify_one();
  }
  void wait_for(int wakes) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return wakes_ >= wakes; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int wakes_ = 0;
};

std::vector<std::string> bodies_in(Disk& disk, OpenedLog* opened = nullptr) {
  std::vector<std::string> bodies;
  auto log = open_log(disk, {.log = kSmall}, [&](const Record& record) -> Status {
    bodies.emplace_back(text_of(record.body));
    return {};
  });
  EXPECT_TRUE(log.has_value()) << log.error().message;
  if (log && opened) *opened = std::move(*log);
  return bodies;
}

std::unique_ptr<FileLog> open(Disk& disk, Loop& loop, const Options& options = kSmall) {
  auto opened = open_log(disk, {.log = options}, [](const Record&) { return Status(); });
  EXPECT_TRUE(opened.has_value()) << opened.error().message;
  return std::make_unique<FileLog>(std::move(opened->writer), [&loop] { loop.wake(); });
}

TEST(FileLog, ReadsBackWhatItWroteAfterACleanStop) {
  const TemporaryDirectory directory;
  std::vector<std::string> written;
  {
    auto disk = PosixDisk::open_directory(directory.path()).value();
    Loop loop;
    auto log = open(*disk, loop);
    for (int i = 0; i < 300; ++i) {
      written.push_back(fmt::format("record {} {}", i, std::string(static_cast<std::size_t>(i) * 7, 'x')));
      while (!log->has_room()) log->start_flush();
      EXPECT_EQ(log->append(1, Instant{i}, bytes_of(written.back())).lsn, static_cast<Lsn>(i + 1));
      if (i % 10 == 0) log->start_flush();
    }
    ASSERT_TRUE(log->close());
    EXPECT_EQ(log->durable(), 300u);
    EXPECT_GT(log->segments().list().size(), 3u);
  }
  auto disk = PosixDisk::open_directory(directory.path()).value();
  OpenedLog opened;
  EXPECT_EQ(bodies_in(*disk, &opened), written);
  EXPECT_TRUE(opened.was_clean);
  EXPECT_EQ(opened.end.epoch, 1u);
  EXPECT_EQ(opened.writer->epoch(), 2u);
}

TEST(FileLog, MakesEverythingGatheredMeanwhileDurableInOneFlush) {
  const TemporaryDirectory directory;
  auto disk = PosixDisk::open_directory(directory.path()).value();
  Loop loop;
  std::binary_semaphore gathered(0);
  std::atomic<bool> first = true;
  auto opened = open_log(*disk, {.log = kSmall}, [](const Record&) { return Status(); });
  FileLog log(std::move(opened->writer), [&] {
    loop.wake();
    if (first.exchange(false)) gathered.acquire();  // the flusher stands still between its first two flushes
  });
  log.append(1, Instant{1}, bytes_of("first"));
  EXPECT_EQ(log.durable(), 0u);
  log.start_flush();
  loop.wait_for(1);
  EXPECT_EQ(log.durable(), 1u);
  for (int i = 0; i < 20; ++i) {
    log.append(1, Instant{2}, bytes_of("gathered"));
    log.start_flush();  // remembered until the flusher is free again
  }
  gathered.release();
  loop.wait_for(2);
  EXPECT_EQ(log.durable(), 21u);
  EXPECT_EQ(verify_log(*disk)->batches, 2u);
}

TEST(FileLog, FlushesOnTheCallersThreadIfAskedTo) {
  const TemporaryDirectory directory;
  auto disk = PosixDisk::open_directory(directory.path()).value();
  std::vector<std::string> written;
  {
    Loop loop;
    auto log = open(*disk, loop);
    log->flush_here();
    EXPECT_EQ(log->durable(), 0u) << "there is nothing to flush";
    for (int i = 0; i < 200; ++i) {  // over several segments
      written.push_back(std::to_string(i) + std::string(500, 'x'));
      const Place place = log->append(1, Instant{1}, bytes_of(written.back()));
      log->flush_here();
      EXPECT_EQ(log->durable(), place.lsn);
    }
    EXPECT_GT(log->segments().list().size(), 1u);
    EXPECT_TRUE(log->close());
  }
  EXPECT_EQ(bodies_in(*disk), written);
}

TEST(FileLog, GivesPlacesAtWhichTheBodyCanBeRead) {
  const TemporaryDirectory directory;
  auto disk = PosixDisk::open_directory(directory.path()).value();
  Loop loop;
  auto log = open(*disk, loop);
  std::vector<std::pair<Place, std::string>> placed;
  for (int i = 0; i < 60; ++i) {
    const std::string body = fmt::format("{}{}", i, std::string(1500, static_cast<char>('a' + i % 26)));
    placed.emplace_back(log->append(7, Instant{i}, bytes_of(body)), body);
    log->start_flush();
    loop.wait_for(i + 1);
    const auto& [place, last] = placed.back();
    EXPECT_EQ(text_of(log->segments().read(place.lsn, place.offset, last.size()).value()), last);
  }
  for (const auto& [place, body] : placed) {
    EXPECT_EQ(text_of(log->segments().read(place.lsn, place.offset, body.size()).value()), body);
  }
  EXPECT_EQ(log->segments().read(61, 4096, 1).error().code, Errc::not_found);
}

TEST(FileLog, LosesOnlyWhatWasNotFlushedWhenItIsNotClosed) {
  const TemporaryDirectory directory;
  {
    auto disk = PosixDisk::open_directory(directory.path()).value();
    Loop loop;
    auto log = open(*disk, loop);
    log->append(1, Instant{1}, bytes_of("kept"));
    log->start_flush();
    loop.wait_for(1);
    log->append(1, Instant{1}, bytes_of("lost"));
  }
  auto disk = PosixDisk::open_directory(directory.path()).value();
  OpenedLog opened;
  EXPECT_EQ(bodies_in(*disk, &opened), std::vector<std::string>{"kept"});
  EXPECT_FALSE(opened.was_clean);
}

// A disk whose files refuse to sync once it is told so. Unlike the simulated one it may be used by threads.
class StubbornDisk final : public Disk {
 public:
  explicit StubbornDisk(Disk& disk) : disk_(disk) {}
  std::atomic<bool> fails_syncs = false;
  std::atomic<bool> is_full = false;

  Result<std::unique_ptr<File>> create(const std::string& path, std::uint64_t size) override {
    return stubborn(disk_.create(path, size));
  }
  Result<std::unique_ptr<File>> open(const std::string& path) override { return stubborn(disk_.open(path)); }
  Result<std::unique_ptr<File>> open_uncached(const std::string& path) override {
    return disk_.open_uncached(path);
  }
  Status rename(const std::string& from, const std::string& to) override { return disk_.rename(from, to); }
  Status remove(const std::string& path) override { return disk_.remove(path); }
  Status make_directory(const std::string& path) override { return disk_.make_directory(path); }
  Status sync_directory(const std::string& path) override { return disk_.sync_directory(path); }
  Result<std::vector<std::string>> list(const std::string& path) override { return disk_.list(path); }
  Result<std::uint64_t> free_bytes() override {
    if (is_full) return std::uint64_t{0};
    return disk_.free_bytes();
  }

 private:
  class StubbornFile final : public File {
   public:
    StubbornFile(std::unique_ptr<File> file, std::atomic<bool>& fails)
        : file_(std::move(file)), fails_(fails) {}
    Status write(std::uint64_t offset, ByteView bytes) override { return file_->write(offset, bytes); }
    Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) override {
      return file_->read(offset, into);
    }
    Result<std::uint64_t> size() override { return file_->size(); }
    Status sync() override {
      if (fails_) return baton::failure(Errc::io_failed, "will not");
      return file_->sync();
    }

   private:
    std::unique_ptr<File> file_;
    std::atomic<bool>& fails_;
  };
  Result<std::unique_ptr<File>> stubborn(Result<std::unique_ptr<File>> file) {
    if (!file) return file;
    return std::make_unique<StubbornFile>(std::move(*file), fails_syncs);
  }

  Disk& disk_;
};

TEST(FileLog, StandsStillAfterTheFirstFailedFlush) {
  const TemporaryDirectory directory;
  auto posix = PosixDisk::open_directory(directory.path()).value();
  StubbornDisk disk(*posix);
  Loop loop;
  auto log = open(disk, loop);
  log->append(1, Instant{1}, bytes_of("durable"));
  log->start_flush();
  loop.wait_for(1);
  EXPECT_TRUE(log->failure());

  disk.fails_syncs = true;
  log->append(1, Instant{1}, bytes_of("unknown"));
  log->start_flush();
  loop.wait_for(2);  // a failure wakes the loop as well
  ASSERT_FALSE(log->failure());
  EXPECT_EQ(log->failure().error().message, "will not");

  disk.fails_syncs = false;  // too late: the first failure is final
  log->append(1, Instant{1}, bytes_of("after"));
  log->start_flush();
  EXPECT_EQ(log->durable(), 1u);
  EXPECT_FALSE(log->failure());
  EXPECT_FALSE(log->close());
  EXPECT_FALSE(read_control(disk)->value().clean);
}

TEST(FileLog, SaysWhenTheNextSegmentCannotBeMade) {
  const TemporaryDirectory directory;
  auto posix = PosixDisk::open_directory(directory.path()).value();
  StubbornDisk disk(*posix);
  Loop loop;
  auto log = open(disk, loop);
  int flushes = 0;
  const auto flush_one = [&] {
    log->append(1, Instant{1}, bytes_of("x"));
    log->start_flush();
    loop.wait_for(++flushes);
  };
  flush_one();
  while (!disk.open(kSuccessorPath)) std::this_thread::yield();  // the next file is made in the background
  EXPECT_TRUE(log->headroom().can_rotate);
  disk.is_full = true;
  // Uses up that file; then the attempt to make another one fails, again in the background.
  while (log->segments().list().size() == 1) flush_one();
  while (log->headroom().can_rotate) std::this_thread::yield();
  flush_one();
  EXPECT_TRUE(log->failure()) << "noticed before a flush had to fail";
  disk.is_full = false;
  while (!log->headroom().can_rotate) flush_one();
  EXPECT_TRUE(log->close());
}

TEST(DataDirectory, IsRefusedWhileAnotherHasIt) {
  const TemporaryDirectory directory;
  auto disk = PosixDisk::open_directory(directory.path()).value();
  auto second = PosixDisk::open_directory(directory.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::locked);
  EXPECT_NE(second.error().message.find("already open in this process"), std::string::npos)
      << second.error().message;
  disk.reset();
  EXPECT_TRUE(PosixDisk::open_directory(directory.path()));
}

TEST(DataDirectory, IsCreatedForItsOwnerOnly) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/data";
  ASSERT_TRUE(PosixDisk::open_directory(path));
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST(DataDirectory, MayBeReadByToolsWhileItIsInUse) {
  const TemporaryDirectory directory;
  auto disk = PosixDisk::open_directory(directory.path()).value();
  Loop loop;
  auto log = open(*disk, loop);
  log->append(1, Instant{1}, bytes_of("seen"));
  log->start_flush();
  loop.wait_for(1);
  auto reader = PosixDisk::open_read_only(directory.path()).value();
  const auto report = verify_log(*reader);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->problem.kind, ProblemKind::none) << report->problem.message;
  EXPECT_EQ(report->records, 1u);
  EXPECT_EQ(reader->remove("CONTROL").error().code, Errc::permission_denied);
  EXPECT_EQ(reader->create("x", 1).error().code, Errc::permission_denied);
}

}  // namespace
}  // namespace baton::log
