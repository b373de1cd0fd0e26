#include "log/survey.h"

#include <gtest/gtest.h>

#include <functional>

#include "log/recovery.h"
#include "tests/sim/damage_check.h"
#include "tests/sim/sim_disk.h"

namespace baton::log {
namespace {

using sim::SimDisk;

// Larger than what a survey reads at once, so that it cannot see all of it at one moment.
constexpr Options kOptions{.segment_bytes = std::uint64_t{8} << 20, .batch_bytes = std::uint64_t{64} << 10};

// Somebody else writes to the disk whenever it is read.
class BusyDisk final : public Disk {
 public:
  BusyDisk(Disk& disk, std::function<void()> write) : disk_(disk), write_(std::move(write)) {}

  bool in_use() const override { return true; }
  Result<std::unique_ptr<File>> open(const std::string& path) override { return disk_.open(path); }
  Result<std::unique_ptr<File>> open_uncached(const std::string& path) override {
    auto file = disk_.open_uncached(path);
    if (!file) return file;
    return std::make_unique<BusyFile>(std::move(*file), write_);
  }
  Result<std::vector<std::string>> list(const std::string& path) override { return disk_.list(path); }
  Result<std::uint64_t> free_bytes() override { return disk_.free_bytes(); }

  Result<std::unique_ptr<File>> create(const std::string&, std::uint64_t) override { return refused(); }
  Status rename(const std::string&, const std::string&) override { return refused(); }
  Status remove(const std::string&) override { return refused(); }
  Status make_directory(const std::string&) override { return refused(); }
  Status sync_directory(const std::string&) override { return refused(); }

 private:
  struct BusyFile final : File {
    BusyFile(std::unique_ptr<File> read_from, std::function<void()> first)
        : file(std::move(read_from)), write_first(std::move(first)) {}
    Status write(std::uint64_t, ByteView) override { return refused(); }
    Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> into) override {
      write_first();
      return file->read(offset, into);
    }
    Result<std::uint64_t> size() override { return file->size(); }
    Status sync() override { return refused(); }
    std::unique_ptr<File> file;
    std::function<void()> write_first;
  };
  static std::unexpected<Error> refused() { return failure(Errc::permission_denied, "for reading"); }

  Disk& disk_;
  std::function<void()> write_;
};

class LogInUse : public testing::Test {
 protected:
  LogInUse() : opened_(open_log(disk_, {.log = kOptions}, {})) { append(20); }

  void append(int records) {
    LogWriter& writer = *opened_->writer;
    for (int i = 0; i < records; ++i) {
      writer.append(1, Instant{1}, Bytes(40 << 10, std::byte{7}));
      auto flush = writer.begin_flush();
      ASSERT_TRUE(flush && writer.perform(*flush));
      writer.finish(std::move(*flush));
    }
  }
  std::string newest() const { return segment_path(opened_->writer->segments().list().back().first); }

  SimDisk disk_;
  Result<OpenedLog> opened_;
};

TEST_F(LogInUse, IsReadToAPrefixOfWhatIsWrittenMeanwhile) {
  for (int per_read = 1; per_read < 60; ++per_read) {
    int left = 60;  // then the writer rests
    BusyDisk busy(disk_, [&] {
      const int now = std::min(left, per_read);
      append(now);
      left -= now;
    });
    const Lsn before = opened_->writer->last();
    std::vector<Lsn> seen;
    const auto survey = survey_log(busy, {.visitor = [&](const Record& record) -> Status {
                                     seen.push_back(record.place.lsn);
                                     return {};
                                   }});
    ASSERT_TRUE(survey);
    ASSERT_EQ(survey->report.problem.kind, ProblemKind::none) << survey->report.problem.message;
    ASSERT_GE(survey->report.last, before);
    ASSERT_EQ(seen.size(), survey->report.last);
    ASSERT_EQ(seen.back(), survey->report.last);
  }
}

TEST_F(LogInUse, IsDamagedAllTheSameIfWhatWasAcknowledgedCannotBeRead) {
  disk_.flip_bit(newest(), kSegmentHeaderBytes + 3 * (44 << 10) + 5000, 1);
  int left = 40;
  BusyDisk busy(disk_, [&] {
    if (left > 0) append(1);
    --left;
  });
  const auto survey = survey_log(busy, {});
  ASSERT_TRUE(survey);
  EXPECT_EQ(survey->report.problem.kind, ProblemKind::corrupt);
  EXPECT_EQ(survey->report.problem.first, 4u);
}

TEST_F(LogInUse, IsIntactWithABatchHalfWritten) {
  const auto survey = survey_log(disk_, {});
  append(1);
  Bytes content = disk_.content(newest());
  std::fill(content.begin() + static_cast<std::ptrdiff_t>(survey->end.tail.end + kBlockBytes), content.end(),
            std::byte{0});
  disk_.set_content(newest(), content);
  BusyDisk busy(disk_, [] {});
  const auto report = survey_log(busy, {})->report;
  EXPECT_EQ(report.problem.kind, ProblemKind::none) << report.problem.message;
  EXPECT_EQ(report.last, 20u);
  EXPECT_EQ(survey_log(disk_, {})->report.problem.kind, ProblemKind::torn_tail);
}

}  // namespace
}  // namespace baton::log
