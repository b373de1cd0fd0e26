#include "server/blob_transfer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <semaphore>
#include <utility>

#include "tests/temporary_directory.h"

namespace baton::server {
namespace {

// Of a function: whether it is there still.
struct Presence {
  explicit Presence(bool& gone) : is_gone(gone) {}
  ~Presence() { is_gone = true; }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;
  bool& is_gone;
};

// P15: as it is where only the head is wanted.
TEST(ADownload, ThatIsLetGoAsItBeginsDoesNotTakeItsListenerAway) {
  const TemporaryDirectory directory;
  std::function<void()> posted;
  std::binary_semaphore came(0);
  BlobShelf shelf(directory.path(), {}, [&](std::function<void()> done) {
    posted = std::move(done);
    came.release();
  });
  const core::TaskId task{.epoch = 1, .lsn = 2};
  const std::string hash(64, 'a');
  std::filesystem::create_directories(shelf.folder_of(task));
  std::ofstream(shelf.folder_of(task) + "/" + hash) << "bytes";

  std::shared_ptr<BlobTransfer> download;
  bool is_gone = false, has_begun = false;
  auto begins = [&, presence = std::make_shared<Presence>(is_gone)](std::uint64_t bytes) {
    const bool& gone = is_gone;
    bool& begun = has_begun;
    download->let_go();
    EXPECT_FALSE(gone);
    EXPECT_EQ(bytes, 5u);
    begun = true;
  };
  download = std::make_shared<BlobDownload>(
      shelf, task, hash, BlobTransfer::Tells{.finished = {}, .begins = std::move(begins), .changed = {}});
  download->begin();
  came.acquire();
  std::exchange(posted, {})();
  EXPECT_TRUE(has_begun);
}

// P15: a file of many gigabytes takes long to go, and meanwhile nobody would be served.
TEST(AnUpload, ThatIsLetGoLeavesItsFileToWhoeverWaitsForTheDisk) {
  const TemporaryDirectory directory;
  std::function<void()> posted;
  std::binary_semaphore came(0);
  BlobShelf shelf(directory.path(), {}, [&](std::function<void()> done) {
    posted = std::move(done);
    came.release();
  });
  const core::TaskId task{.epoch = 1, .lsn = 2};
  const auto upload =
      std::make_shared<BlobUpload>(shelf, task, std::string(64, 'a'), 10, BlobTransfer::Tells{});
  upload->begin();
  came.acquire();
  EXPECT_FALSE(std::filesystem::is_empty(shelf.folder_of(task)));
  upload->let_go();
  came.acquire();
  EXPECT_TRUE(std::filesystem::is_empty(shelf.folder_of(task)));
}

}  // namespace
}  // namespace baton::server
