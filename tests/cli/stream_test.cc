// `baton stream` at a coordinator.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/cli/said.h"
#include "tests/scripted_server.h"

namespace baton::cli {
namespace {

using Words = std::vector<std::string>;

// S20: or it would never end while messages die again at once
TEST(StreamDeadCommand, LeavesAloneWhatDiesWhileItIsAtWork) {
  for (const std::string verb : {"REPLAY", "PURGE"}) {
    std::mutex mutex;
    std::vector<Words> heard;
    const ScriptedServer server([&](const Words& words) -> std::string {
      if (words[0] != "STREAM_" + verb) return words[0] == "PING" ? "+PONG\r\n" : "+OK\r\n";
      const std::lock_guard lock(mutex);
      heard.push_back(words);
      const int left = 3 - static_cast<int>(heard.size());
      return "%3\r\n+lsn\r\n:1\r\n+purged\r\n:" + std::to_string(left) +
             "\r\n+last_letter\r\n:" + std::to_string(10 * heard.size()) + "\r\n";
    });
    const Said said = baton(
        {"stream", "dead", verb == "PURGE" ? "purge" : "replay", "--all", "--connect", server.address()});
    EXPECT_EQ(said.exit_code, 0) << said.errors;
    EXPECT_TRUE(contains(said.output, "3 dead letters")) << said.output;
    ASSERT_EQ(heard.size(), 3u);
    Words more = heard[0];
    more.insert(more.end(), {"LAST_LETTER", "10"});
    EXPECT_EQ(heard[1], more);
    EXPECT_EQ(heard[2], more);
  }
}

}  // namespace
}  // namespace baton::cli
