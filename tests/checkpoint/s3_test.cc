// Checkpoints at an S3-compatible service: a small one of ours, which computes signatures by itself, refuses,
// drops requests before they are done, and drops answers after; or a real one (tests/checkpoint/radosgw).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <new>

#include "checkpoint/s3_storage.h"
#include "tests/checkpoint/no_threads.h"
#include "tests/checkpoint/short_of_memory.h"
#include "tests/checkpoint/world.h"
#include "tests/crash/child.h"

namespace baton::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

enum class Whose : bool { any, ours };

class Service {
 public:
  // A real one is taken if there is one; how ours stumbles is not asked of it.
  explicit Service(std::vector<std::string> arguments = {}, Whose whose = Whose::any) {
    if (const char* endpoint = std::getenv("BATON_S3_ENDPOINT"); endpoint != nullptr && whose == Whose::any) {
      endpoint_ = endpoint;
      EXPECT_TRUE(S3Client(options()).ask({.method = "PUT", .key = ""}));  // the bucket, also if it is there
      return;
    }
    arguments.insert(arguments.begin(), {"/usr/bin/python3", BATON_S3_STUB});
    child_ = std::make_unique<crash::Child>(crash::ChildOptions{.command = arguments, .environment = {}});
    child_->listen(crash::after_ms(60'000), [&](const std::string& line) {
      if (!line.starts_with("port ")) return true;
      endpoint_ = "http://127.0.0.1:" + line.substr(5);
      return false;
    });
  }

  S3Options options() const {
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    return {.endpoint = endpoint_,
            .bucket = "bucket",
            .prefix = "runs/" + test + "-" + std::to_string(getpid()),
            .credentials = {.access_key = "key", .secret_key = "secret", .session_token = {}},
            .tries = 12,
            .first_pause = milliseconds(1),
            .longest_pause = milliseconds(20)};
  }

 private:
  std::unique_ptr<crash::Child> child_;
  std::string endpoint_;
};

std::unique_ptr<S3Storage> open(const S3Options& options) {
  auto storage = S3Storage::open_bucket(options);
  EXPECT_TRUE(storage) << storage.error().message;
  return storage ? std::move(*storage) : nullptr;
}

Bytes numbered(std::size_t bytes) {
  Bytes all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>((i * 2'654'435'761U) >> 24);
  return all;
}

void expect_files_to_come_back(Storage& storage) {
  const Bytes content = numbered((std::size_t{36} << 20) + 12'345);  // three parts
  auto writer = storage.create("step-1/a/r0.safetensors", content.size());
  ASSERT_TRUE(writer) << writer.error().message;
  for (ByteView left = content; !left.empty();) {
    const std::size_t count = std::min<std::size_t>(left.size(), 5'000'000);
    ASSERT_TRUE((*writer)->append(left.first(count)));
    left = left.subspan(count);
  }
  EXPECT_EQ(storage.open("step-1/a/r0.safetensors").error().code, Errc::not_found)
      << "not before it is finished";
  const Status finished = (*writer)->finish();
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_EQ(storage.create("step-1/a/r0.safetensors", 1).error().code, Errc::conflict);

  const auto reader = storage.open("step-1/a/r0.safetensors");
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_EQ((*reader)->size(), content.size());
  const std::vector<ByteRange> ranges{
      {0, 10}, {1'000'000, 3'000'000}, {20'000'000, content.size() - 20'000'000}};
  Bytes got;
  const Status read = (*reader)->read(ranges, [&](std::uint64_t offset, ByteView piece) -> Status {
    EXPECT_LE(offset % kBlockBytes + piece.size(), kBlockBytes);
    EXPECT_TRUE(std::ranges::equal(piece, ByteView(content).subspan(offset, piece.size())));
    got.insert(got.end(), piece.begin(), piece.end());
    return {};
  });
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(got.size(), 10 + 3'000'000 + content.size() - 20'000'000);
}

// C11
TEST(S3, KeepsFilesInPartsAndGivesBackRanges) {
  const Service service;
  expect_files_to_come_back(*open(service.options()));
}

// C11: parts and ranges that cannot go beside each other go one after the other
TEST(S3, KeepsFilesAlsoWithoutAThreadToBeHad) {
  const Service service;
  const auto storage = open(service.options());
  const NoThreads none;
  expect_files_to_come_back(*storage);
}

// C10, C11: also where it stumbles
TEST(S3, TriesAgainWhatMayBePassing) {
  const Service service({"--faults", "25"});
  const auto storage = open(service.options());
  expect_files_to_come_back(*storage);
  for (int i = 0; i < 20; ++i) {
    const std::string name = "decision-" + std::to_string(i);
    const auto first = storage->put_if_absent(name, bytes_of("mine"));
    ASSERT_TRUE(first && *first) << name;  // also if the answer to the first try was lost
    const auto second = storage->put_if_absent(name, bytes_of("another's"));
    ASSERT_TRUE(second && !*second) << name;
  }
}

// C8, C10: the newest is whole, so an older one is no answer to a service that is overloaded
TEST(S3, ThatIsBusyIsNoDamage) {
  const Service service({"--busy", "/step-8/.*safetensors"}, Whose::ours);
  const auto storage = open(service.options());
  ASSERT_THAT(save(*storage, 2, 7, 1), Each("fine"));
  ASSERT_THAT(save(*storage, 2, 8, 2), Each("fine"));
  EXPECT_THAT(load(*storage, 2, "", 2, model, {.fall_back = true}),
              Each(AllOf(HasSubstr("UNAVAILABLE"), HasSubstr("the service answered 503 SlowDown"))));
}

// C6: one of those who try wins
TEST(S3, GivesANameToOneOnly) {
  const Service service;
  const auto storage = open(service.options());
  std::atomic<int> winners = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        const auto won = storage->put_if_absent("manifest", bytes_of(std::to_string(i)));
        if (won && *won) ++winners;
      });
    }
  }
  EXPECT_EQ(winners, 1);
}

TEST(S3, ListsAndRemovesAsDirectories) {
  const Service service;
  const auto storage = open(service.options());
  for (const char* name : {"a/1", "a/2", "a/b/3", "a/b/4", "a/<&>", "c", "d", "e"})
    ASSERT_TRUE(storage->put_if_absent(name, bytes_of("x")));
  const auto name = [](const std::string& is) { return Field(&StorageEntry::name, is); };
  const auto root = storage->list("");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_THAT(*root, ElementsAre(name("a"), name("c"), name("d"), name("e")));
  EXPECT_TRUE(root->front().is_directory);
  EXPECT_THAT(*storage->list("a"), ElementsAre(name("1"), name("2"), name("<&>"), name("b")));
  EXPECT_EQ(storage->list("nothing").error().code, Errc::not_found);
  EXPECT_TRUE(storage->remove_directory("a"));
  EXPECT_THAT(*storage->list(""), ElementsAre(name("c"), name("d"), name("e")));
  EXPECT_TRUE(storage->remove("c"));
  EXPECT_TRUE(storage->remove("c"));
}

TEST(S3, IsRefusedClearly) {
  const Service service;
  S3Options options = service.options();
  options.credentials.secret_key = "wrong";
  EXPECT_EQ(S3Storage::open_bucket(options).error().code, Errc::permission_denied);
  options = service.options();
  options.bucket = "another";
  EXPECT_THAT(S3Storage::open_bucket(options).error().message, HasSubstr("bucket 'another'"));
  options.endpoint = "http://127.0.0.1:1";
  options.tries = 2;
  EXPECT_EQ(S3Storage::open_bucket(options).error().code, Errc::unavailable);
  // C6: one that lets two writers win
  const Service careless({"--unconditional"}, Whose::ours);
  const auto opened = open(careless.options());
  EXPECT_THAT(opened->put_if_absent("manifest", bytes_of("x")).error().message, HasSubstr("If-None-Match"));
  EXPECT_THAT(opened->create("shard", 1).error().message, HasSubstr("If-None-Match"));
}

// C11: whoever evaluates a model has no business writing
TEST(S3, IsReadWithoutPermissionToWrite) {
  const Service service({}, Whose::ours);
  const auto writing = open(service.options());
  ASSERT_THAT(save(*writing, 2, 7, 1), Each("fine"));
  ASSERT_TRUE(writing->put_if_absent("read-only", bytes_of("from now on")));
  const auto reading = open(service.options());
  ASSERT_TRUE(reading);
  EXPECT_THAT(load(*reading, 3, "", 1), Each("fine"));
  EXPECT_EQ(reading->put_if_absent("manifest", bytes_of("x")).error().code, Errc::permission_denied);
  EXPECT_EQ(reading->create("shard", 1).error().code, Errc::permission_denied);
}

// C6: it would be committed, and nobody could load it
TEST(S3, RefusesWhatItCouldNotReadBack) {
  constexpr std::size_t kBytes = (std::size_t{1} << 30) + 1;
  void* const none = ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(none, MAP_FAILED);
  S3Client client({.endpoint = "http://127.0.0.1:1", .bucket = "bucket"});
  const ByteView manifest(static_cast<const std::byte*>(none), kBytes);
  EXPECT_EQ(client.ask({.method = "PUT", .key = "manifest", .body = manifest}).error().code, Errc::too_large);
  ::munmap(none, kBytes);
}

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

// C11
TEST(S3, LeavesNothingOpenWithoutMemoryForAnAnswer) {
  const Service service;
  const auto storage = open(service.options());
  ASSERT_TRUE(storage->put_if_absent("there", Bytes(100'000)));
  ASSERT_TRUE(storage->get("there"));
  const std::ptrdiff_t before = open_files();
  bool was_short = true;
  for (std::size_t pieces = 0; was_short; ++pieces) {
    const ShortOfMemory memory(pieces);
    try {
      (void)storage->get("there");
    } catch (const std::bad_alloc&) {
    }
    was_short = memory.has_happened();
  }
  EXPECT_LE(open_files(), before);
}

// C10: what goes then must not ask for any
TEST(S3, GivesAFileUpWithoutMemory) {
  const Service service;
  const auto storage = open(service.options());
  auto writer = *storage->create("new", 40 << 20);
  ASSERT_TRUE(writer->append(Bytes(17 << 20)));
  {
    const ShortOfMemory memory(0);
    writer.reset();
  }
  EXPECT_EQ(storage->open("new").error().code, Errc::not_found);
}

// C4, C7, C11
TEST(S3, HoldsCheckpointsForAnyNumberOfRanks) {
  const Service service({"--faults", "5"});
  const auto storage = open(service.options());
  ASSERT_THAT(save(*storage, 2, 7, 1), Each("fine"));
  ASSERT_THAT(save(*storage, 2, 8, 2), Each("fine"));
  EXPECT_THAT(load(*storage, 3, "", 2), Each("fine"));
  EXPECT_THAT(load(*storage, 1, "step-7", 1), Each("fine"));
}

}  // namespace
}  // namespace baton::checkpoint
