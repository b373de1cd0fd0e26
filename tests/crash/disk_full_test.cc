// A disk that is nearly full refuses submissions and lets what is under way finish; when there is space
// again, so is service.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "engine/verify.h"
#include "log/posix_disk.h"
#include "tests/crash/child.h"
#include "tests/served.h"
#include "tests/temporary_directory.h"

namespace baton::crash {
namespace {

std::string all(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

void expect_graceful(const std::vector<std::string>& lines, const Exit& exit, const std::string& errors) {
  const std::string said = all(lines);
  EXPECT_NE(said.find("refused EXHAUSTED after "), std::string::npos) << said;
  EXPECT_NE(said.find("completed 40\n"), std::string::npos) << said;
  EXPECT_NE(said.find("resumed\n"), std::string::npos) << said;
  EXPECT_EQ(exit.code, 0) << "signal " << exit.signal << "\n" << errors << said;
}

// Runs crash_fill on a disk of `capacity` bytes and gives it ten times as much when it waits.
Ran fill(std::uint64_t capacity, int completions) {
  const TemporaryDirectory directory;
  const std::string data = directory.path() + "/data";
  Shim shim(directory.path() + "/page", data);
  shim.page().capacity_bytes = capacity;
  Child child(
      {.command = {BATON_CRASH_FILL, data, std::to_string(completions)}, .environment = shim.environment()});
  Ran ran;
  child.listen(after_ms(30'000), [&](const std::string& line) {
    ran.lines.push_back(line);
    if (line == "waiting") shim.page().capacity_bytes = 10 * capacity;
    return true;
  });
  ran.exit = child.wait(after_ms(30'000));
  ran.errors = child.errors();
  return ran;
}

TEST(NearlyFullDisk, RefusesSubmissionsAndLetsCompletionsThroughUntilThereIsSpaceAgain) {
  for (const std::uint64_t capacity : {2'000'000u, 2'345'678u, 3'000'000u}) {
    SCOPED_TRACE(capacity);
    const Ran ran = fill(capacity, 40);
    expect_graceful(ran.lines, ran.exit, ran.errors);
  }
}

// Even what was set aside comes to an end. Then everything is refused, and nothing is lost.
TEST(FullDisk, RefusesEverythingAndGoesOnWhenThereIsSpaceAgain) {
  const Ran ran = fill(2'000'000, 1'000'000);
  const std::string said = all(ran.lines);
  EXPECT_NE(said.find("refused EXHAUSTED after "), std::string::npos) << said;
  EXPECT_NE(said.find("resumed\n"), std::string::npos) << said;
  EXPECT_EQ(ran.exit.code, 0) << "signal " << ran.exit.signal << "\n" << ran.errors << said;
}

// The same on a real file system, where this process may mount one.
TEST(NearlyFullDisk, BehavesTheSameOnARealFileSystem) {
  const TemporaryDirectory directory;
  const std::string script =
      "mount -t tmpfs -o size=6m tmpfs \"$1\" 2>/dev/null || exit 99; "
      "head -c 3000000 /dev/zero > \"$1/ballast\" && exec \"$0\" \"$1/data\" 40 \"$1/ballast\"";
  const Ran ran = run(
      {.command = {"/usr/bin/unshare", "-m", "/bin/sh", "-c", script, BATON_CRASH_FILL, directory.path()}});
  if (ran.exit.code == 99 || ran.exit.code == 127 || ran.errors.find("unshare") != std::string::npos) {
    GTEST_SKIP() << "no file system can be mounted here";
  }
  expect_graceful(ran.lines, ran.exit, ran.errors);
}

// X5 X7: a server with hardly any room tells whoever looks.
TEST(NearlyFullDisk, IsToldOnceInTheLogAndInStatsMetricsAndReadiness) {
  const TemporaryDirectory directory;
  const std::string data = directory.path() + "/data";
  Shim shim(directory.path() + "/page", data);
  shim.page().capacity_bytes = 20 << 20;
  Served server(BATON_PROGRAM, {"--segment-bytes", "4MiB"},
                {.directory = data, .environment = shim.environment()});
  const auto ask = [&](const std::string& command) {
    return run({.command = {BATON_PROGRAM, command, "--connect", server.address()}});
  };
  const auto page = [&](const std::string& path) {
    const std::string address = "http://127.0.0.1:" + std::to_string(server.http_port()) + path;
    return all(run({.command = {"/usr/bin/curl", "-sf", address}}).lines);
  };
  EXPECT_TRUE(eventually([&] {
    return all(ask("stats").lines).find(" free; nearly full: submissions are refused") != std::string::npos;
  }));
  EXPECT_EQ(page("/readyz"),
            "ready; the disk is nearly full, and submissions are refused: free some space\n");
  EXPECT_NE(page("/metrics").find("\nbaton_disk_nearly_full 1\n"), std::string::npos);
  shim.page().capacity_bytes = 200 << 20;
  EXPECT_TRUE(eventually([&] { return page("/readyz") == "ready\n"; }));
  EXPECT_TRUE(server.stop());
  const std::string said = server.errors();
  EXPECT_EQ(said.find("the disk is nearly full: "), said.rfind("the disk is nearly full: ")) << said;
  EXPECT_NE(said.find(" bytes are free, which are kept for completions"), std::string::npos) << said;
}

TEST(FullDisk, IsSaidAtTheStart) {
  const TemporaryDirectory directory;
  const std::string data = directory.path() + "/data";
  Shim shim(directory.path() + "/page", data);
  shim.page().capacity_bytes = 10'000;
  const Ran ran = run({.command = {BATON_CRASH_FILL, data, "1"}, .environment = shim.environment()});
  EXPECT_EQ(ran.exit.code, 1);
  EXPECT_NE(ran.errors.find("NO_SPACE: "), std::string::npos) << ran.errors;
  EXPECT_NE(ran.errors.find("free some space"), std::string::npos) << ran.errors;
}

}  // namespace
}  // namespace baton::crash
