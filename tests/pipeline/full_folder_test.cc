// A shared folder on a disk that is full: the run ends in time and says why, and what is there is whole.
#include <gmock/gmock.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "tests/pipeline/yard.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A disk of a quarter of a megabyte, if this process may have one.
class SmallDisk {
 public:
  SmallDisk() : is_mounted_(::mount("tmpfs", path().c_str(), "tmpfs", 0, "size=256k") == 0), error_(errno) {}
  ~SmallDisk() {
    if (is_mounted_) ::umount2(path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  std::string path() const { return directory_.path(); }
  bool is_mounted() const { return is_mounted_; }
  std::string trouble() const { return std::strerror(error_); }
  void fill() const {
    std::ofstream file(path() + "/ballast");
    for (int i = 0; i < 1024 && file; ++i) file << std::string(1024, 'x') << std::flush;
  }

 private:
  TemporaryDirectory directory_;
  const bool is_mounted_;
  const int error_;
};

TEST(ProcessesInAFullFolder, EndAndSayWhichItIs) {  // P2 P16
  const SmallDisk disk;
  if (!disk.is_mounted()) GTEST_SKIP() << "a small disk cannot be mounted: " << disk.trouble();
  const Yard yard(
      "version: 1\nmodules: { a: { run: 'touch began; while [ ! -e go ]; do sleep 0.05; done' } }");
  const std::string where = "dir:" + disk.path() + "/run";
  crash::Child master(yard.run({"--connect", where, "--only-master", "--lost-after", "1s"}));
  crash::Child worker(yard.worker(where));
  ASSERT_TRUE(eventually([&] { return fs::exists(yard.path() + "/began"); }));
  disk.fill();
  std::ofstream(yard.path() + "/go").close();
  std::string said;
  master.listen(crash::after_ms(20'000), [&](const std::string& line) {
    said += line + "\n";
    return true;
  });
  EXPECT_EQ(master.wait(crash::after_ms(10'000)).code, 4) << said << master.errors();
  EXPECT_THAT(said, AllOf(HasSubstr(disk.path() + "/run"), HasSubstr("No space left on device")));
  for (const char* folder : {"/run/modules", "/run/results", "/run/workers"}) {
    for (const auto& entry : fs::directory_iterator(disk.path() + folder)) {
      if (entry.path().filename().string().starts_with('.')) continue;  // being written
      std::ifstream file(entry.path());
      const std::string text(std::istreambuf_iterator<char>(file), {});
      EXPECT_TRUE(from_json(text)) << entry.path() << ": " << text;
    }
  }
}

}  // namespace
}  // namespace baton::pipeline
