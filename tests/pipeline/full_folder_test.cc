// A shared folder on a disk that is full: the run ends in time and says why, and what is there is whole.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/pipeline/yard.h"
#include "tests/small_disk.h"

namespace baton::pipeline {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ProcessesInAFullFolder, EndAndSayWhichItIs) {  // P2 P16
  const SmallDisk disk("256k");
  SKIP_WITHOUT(disk);
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
