#include "pipeline/blob_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "pipeline/archive.h"
#include "pipeline/folder_blobs.h"
#include "pipeline/glob.h"
#include "tests/temporary_directory.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}
std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}
std::string only_file_in(const std::string& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) return entry.path();
  }
  return {};
}

TEST(ABlob, IsWhatWasPut) {  // P15
  TemporaryDirectory folder;
  FolderBlobs store(folder.path() + "/blobs");
  const std::string text = std::string(1 << 20, 'a') + "the end";
  const auto blob = store.put(bytes_of_text(text), {});
  ASSERT_TRUE(blob) << blob.error().message;
  EXPECT_EQ(blob->bytes, text.size());
  EXPECT_EQ(fetch_text(store, *blob, {}).value(), text);
  EXPECT_EQ(measure(bytes_of_text("abc"))->hash,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(ABlob, ThatIsDamagedIsNoticedAtEveryByte) {  // P15
  TemporaryDirectory folder;
  FolderBlobs store(folder.path());
  const std::string text = "sixteen bytes...";
  const BlobRef blob = *store.put(bytes_of_text(text), {});
  const std::string file = only_file_in(folder.path());
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] ^= 1;
    write(file, damaged);
    EXPECT_EQ(fetch_text(store, blob, {}).error().code, Errc::corrupt) << at;
    write(file, text.substr(0, at));
    EXPECT_EQ(fetch_text(store, blob, {}).error().code, Errc::corrupt) << at;
  }
  write(file, text + "!");
  EXPECT_THAT(fetch_text(store, blob, {}).error().message, HasSubstr(folder.path()));
  ASSERT_TRUE(store.put(bytes_of_text(text), {}));
  EXPECT_EQ(fetch_text(store, blob, {}).value(), text) << "putting it again does not repair it";
}

TEST(ABlob, ThatIsMissingIsNotFound) {  // P15
  TemporaryDirectory folder;
  FolderBlobs store(folder.path());
  EXPECT_EQ(fetch_text(store, {std::string(64, '0'), 3}, {}).error().code, Errc::not_found);
  EXPECT_EQ(fetch_text(store, {"../../etc/passwd", 3}, {}).error().code, Errc::invalid_request);
}

// One whose connections break, each in the middle of a blob.
class BreakingBlobs : public TemporaryBlobs {
 public:
  Status pour(const BlobRef& blob, const ByteSink& into, const std::stop_token& stop) override {
    if (breaks-- <= 0) return TemporaryBlobs::pour(blob, into, stop);
    if (auto taken = into("half"); !taken) return taken;
    return failure(Errc::outcome_unknown, "the connection broke");
  }
  int breaks = 0;
};

TEST(ABlob, IsFetchedAnewIfTheConnectionBreaksInTheMiddle) {  // P15
  TemporaryDirectory folder;
  BreakingBlobs store;
  const BlobRef blob = *store.put(bytes_of_text("halfway there"), {});
  store.breaks = 2;
  EXPECT_EQ(fetch_text(store, blob, {}).value_or("nothing"), "halfway there");
  store.breaks = 2;
  EXPECT_TRUE(fetch_file(store, blob, folder.path() + "/file", {}));
  EXPECT_EQ(contents(folder.path() + "/file"), "halfway there");
  store.breaks = 1000;
  EXPECT_EQ(fetch_text(store, blob, {}).error().code, Errc::outcome_unknown);
  EXPECT_FALSE(fetch_file(store, blob, folder.path() + "/other", {}));
  EXPECT_EQ(store.breaks, 1000 - 6) << "a few times, and not for ever";
}

TEST(ABlob, LeavesNothingBehindIfItsSourceFails) {
  TemporaryDirectory folder;
  FolderBlobs store(folder.path());
  const auto blob = store.put(
      [](const ByteSink& into) -> Status {
        (void)into("half");
        return failure(Errc::io_failed, "no more");
      },
      {});
  EXPECT_EQ(blob.error().message, "no more");
  EXPECT_EQ(only_file_in(folder.path()), "");
}

TEST(ABlob, GoesIfNobodyNamesIt) {
  TemporaryDirectory folder;
  FolderBlobs store(folder.path());
  const BlobRef kept = *store.put(bytes_of_text("kept"), {}), lost = *store.put(bytes_of_text("lost"), {});
  store.sweep({kept.hash}, hours(1));
  EXPECT_TRUE(*store.has(lost, {})) << "somebody may be about to name it";
  store.sweep({kept.hash}, seconds(-60));
  EXPECT_TRUE(*store.has(kept, {}));
  EXPECT_FALSE(*store.has(lost, {}));
}

TEST(ABlob, GoesAloneHoweverOldWhatLiesBesideItIs) {
  TemporaryDirectory folder;
  FolderBlobs store(folder.path());
  const BlobRef lost = *store.put(bytes_of_text("lost"), {});
  const std::string theirs[] = {"notes.txt",       "draft.tmp",       "src/main.cc",
                                lost.hash,         "zz/" + lost.hash, lost.hash.substr(0, 2) + "/b",
                                "src/" + lost.hash};
  for (const std::string& name : theirs) write(folder.path() + "/" + name, "x");
  const std::string half_written = folder.path() + "/0123456789abcdef.tmp";
  write(half_written, "x");
  fs::create_directory(folder.path() + "/ff");
  fs::permissions(folder.path() + "/ff", fs::perms::none);
  store.sweep({}, seconds(-60));
  fs::permissions(folder.path() + "/ff", fs::perms::owner_all);
  EXPECT_FALSE(*store.has(lost, {}));
  EXPECT_FALSE(fs::exists(half_written));
  for (const std::string& name : theirs) EXPECT_TRUE(fs::exists(folder.path() + "/" + name)) << name;
}

TEST(Files, AreFoundByPattern) {
  TemporaryDirectory folder;
  for (const char* name : {"a.cc", "a.h", "src/b.cc", "src/deep/c.cc", "src/.hidden/d.cc", ".baton/e.cc"})
    write(folder.path() + "/" + name, "x");
  const auto found = [&](const char* pattern) { return files_matching(folder.path(), pattern); };
  EXPECT_THAT(found("*.cc"), ElementsAre("a.cc"));
  EXPECT_THAT(found("**/*.cc"), ElementsAre("a.cc", "src/b.cc", "src/deep/c.cc"));
  EXPECT_THAT(found("src"), ElementsAre("src/.hidden/d.cc", "src/b.cc", "src/deep/c.cc"));
  EXPECT_THAT(found("./src/?.cc"), ElementsAre("src/b.cc"));
  EXPECT_THAT(found("src/[bx].cc"), ElementsAre("src/b.cc"));
  EXPECT_THAT(found("missing*"), ElementsAre());
}

TEST(Files, ThatBatonKeepsAreFoundOnlyByName) {  // P15
  TemporaryDirectory folder;
  for (const char* name : {"a", ".b", ".baton/runs/r", "got/.baton-fetched", "got/c", ".baton-0123.tar"})
    write(folder.path() + "/" + name, "x");
  const auto found = [&](const char* pattern) { return files_matching(folder.path(), pattern); };
  EXPECT_THAT(found("."), ElementsAre(".b", "a", "got/c"));
  EXPECT_THAT(found("got"), ElementsAre("got/c"));
  EXPECT_THAT(found(".*"), ElementsAre(".b"));
  EXPECT_THAT(found(".baton/runs"), ElementsAre(".baton/runs/r"));
  EXPECT_THAT(found(".baton"), ElementsAre(".baton/runs/r"));
}

class AnArchive : public ::testing::Test {
 protected:
  // To a file, and from there to another folder.
  Status carry(std::vector<std::string> files) {
    std::ofstream archive(file_, std::ios::binary);
    auto written = archive_of(from_.path(), std::move(files))([&](std::string_view bytes) -> Status {
      archive << bytes;
      return {};
    });
    if (!written) return written;
    archive.close();
    return unpack_archive(file_, to_.path());
  }

  TemporaryDirectory from_, to_, between_;
  const std::string file_ = between_.path() + "/a.tar";
};

TEST_F(AnArchive, CarriesFilesAsTheyAre) {  // P15
  const std::string name = std::string(120, 'd') + "/" + std::string(120, 'f');
  write(from_.path() + "/bin/tool", "#!/bin/sh\n");
  fs::permissions(from_.path() + "/bin/tool", fs::perms::owner_all);
  write(from_.path() + "/empty", "");
  write(from_.path() + "/" + name, std::string(100'000, 'z'));
  fs::create_symlink("tool", from_.path() + "/bin/alias");
  ASSERT_TRUE(carry({"bin/alias", "bin/tool", name, "empty"}));
  EXPECT_EQ(contents(to_.path() + "/bin/alias"), "#!/bin/sh\n");
  EXPECT_TRUE(fs::is_symlink(to_.path() + "/bin/alias"));
  EXPECT_EQ(fs::status(to_.path() + "/bin/tool").permissions(), fs::perms::owner_all);
  EXPECT_EQ(contents(to_.path() + "/" + name), std::string(100'000, 'z'));
  EXPECT_TRUE(fs::exists(to_.path() + "/empty"));
  EXPECT_EQ(std::system(("tar tf " + file_ + " | grep -q bin/tool").c_str()), 0) << "tar cannot read it";
}

TEST_F(AnArchive, StaysInItsFolder) {
  write(from_.path() + "/in/file", "x");
  EXPECT_EQ(carry({"in/../../outside"}).error().code, Errc::io_failed);
  EXPECT_EQ(carry({"in/../in/file"}).error().code, Errc::invalid_request);
  fs::create_symlink("/etc/passwd", from_.path() + "/out");
  EXPECT_THAT(carry({"out"}).error().message, HasSubstr("/etc/passwd"));
}

TEST_F(AnArchive, IsNotUnpackedOnceNobodyWantsIt) {  // P7 P15
  write(from_.path() + "/file", "x");
  ASSERT_TRUE(carry({"file"}));
  const TemporaryDirectory other;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(unpack_archive(file_, other.path(), stop.get_token()).error().code, Errc::closed);
  EXPECT_TRUE(fs::is_empty(other.path()));
}

TEST_F(AnArchive, ThatIsCutOffIsRefused) {
  write(from_.path() + "/file", std::string(2000, 'x'));
  ASSERT_TRUE(carry({"file"}));
  const std::string whole = contents(file_);
  for (std::size_t bytes = 0; bytes < whole.size() - 1024; bytes += 100) {
    write(file_, whole.substr(0, bytes));
    EXPECT_EQ(unpack_archive(file_, to_.path()).error().code, Errc::corrupt) << bytes;
  }
  std::string damaged = whole;
  damaged[5] = '!';
  write(file_, damaged);
  EXPECT_EQ(unpack_archive(file_, to_.path()).error().code, Errc::corrupt);
}

}  // namespace
}  // namespace baton::pipeline
