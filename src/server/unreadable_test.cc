// What is told, and to whom, if bytes in the log can no longer be read.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/backstage.h"
#include "tests/damage.h"

namespace baton::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class AfterDamage : public testing::Test {
 protected:
  AfterDamage()
      : stage_([&] {
          CoordinatorOptions options;
          options.engine.cache_bytes = 0;  // everything is read from the disk
          options.on_note = [&](const std::string& note) { notes_.push_back(note); };
          return options;
        }()) {}
  void damage(const std::string& text) { baton::damage(stage_.log_directory(), text); }

  std::vector<std::string> notes_;
  Backstage stage_;
  Client client_{stage_};
};

// X7: nobody gets it for a while, so that its attempts are not used up before somebody has restored the log.
TEST_F(AfterDamage, ATaskIsPutOffAndTheOthersAreGiven) {
  client_.ask({"SUBMIT", "q", "first-of-two"});
  client_.ask({"SUBMIT", "q", "second-of-two"});
  damage("first-of-two");
  const std::string leased = client_.ask({"LEASE", "w", "q", "COUNT", "2"});
  EXPECT_EQ(member(leased, "tasks"), "*1");
  EXPECT_EQ(member(leased, "payload"), "second-of-two");
  EXPECT_EQ(member(client_.ask({"LEASE", "w", "q"}), "tasks"), "*0");
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("nobody gets the task for an hour")));
}

// S15: what was recorded is answered, and the message is treated as one whose handler fails.
TEST_F(AfterDamage, AMessageHasFailedAndThoseOfOtherStreamsAreGiven) {
  const std::string me = "01930000-0000-7000-8000-0000000000a1";
  const auto message = [](int number, int stream) {
    return fmt::format(R"({{"message":"01930000-0000-7000-8000-00000000000{}","stream":)"
                       R"("01930000-0000-7000-8000-0000000000f{}","type":"T","data":{{"text":"body-{}"}}}})",
                       number, stream, number);
  };
  client_.ask({"STREAM_HEARTBEAT", me, "orders"});
  client_.ask(
      {"STREAM_STORE", me, "inbox", fmt::format("[{},{},{}]", message(1, 1), message(2, 1), message(3, 2))});
  damage("body-1");
  const std::string given = client_.ask(
      {"PROCESS_WORK_BATCH", me, "orders", "NEW_INBOX_MESSAGES", fmt::format("[{}]", message(4, 3))});
  EXPECT_THAT(given, HasSubstr("new_inbox_messages *1 $2 ok"));
  EXPECT_THAT(given, HasSubstr("work *2"));
  EXPECT_THAT(given, HasSubstr("body-3"));
  EXPECT_THAT(given, HasSubstr("body-4"));
  EXPECT_THAT(given, Not(HasSubstr("body-2"))) << "it is behind the one that failed";
  EXPECT_THAT(client_.ask({"STREAM_LAG"}), HasSubstr("to be tried again in"));
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("it counts as failed")));
}

// X2: it is somewhere else by the time it is read, and not lost.
TEST_F(AfterDamage, WhatWasMovedMeanwhileIsFound) {
  const std::string large(100'000, 'x');  // so it is not read at once
  const std::string task = member(client_.ask({"SUBMIT", "q", large}), "task");
  const std::string lease = member(client_.ask({"LEASE", "w", "q"}), "lease");
  client_.ask({"COMPLETE", task, lease, "RESULT", "the-result"});
  stage_.lose_next_segment();
  const std::string got = client_.ask({"GET", task});
  EXPECT_EQ(member(got, "payload"), large);
  EXPECT_EQ(member(got, "result"), "the-result");

  const std::string me = "01930000-0000-7000-8000-0000000000a1";
  const std::string id = "01930000-0000-7000-8000-000000000001";
  client_.ask({"PROCESS_WORK_BATCH", me, "orders", "NEW_INBOX_MESSAGES",
               fmt::format(R"([{{"message":"{}","type":"T","data":"{}"}}])", id, large)});
  client_.ask(
      {"STREAM_FAIL", me, "inbox", fmt::format(R"([{{"message":"{}","error":"it broke","policy":1}}])", id)});
  stage_.lose_next_segment();
  const std::string letters = client_.ask({"STREAM_LETTERS"});
  EXPECT_EQ(member(letters, "data"), '"' + large + '"');
  EXPECT_THAT(letters, HasSubstr("it broke"));
}

// X2: and what is nowhere is not looked for for ever.
TEST_F(AfterDamage, WhatHasGoneIsSaidToHaveGone) {
  const std::string task = member(client_.ask({"SUBMIT", "q", std::string(100'000, 'x')}), "task");
  stage_.lose_next_segment();
  stage_.lose_next_segment();
  EXPECT_THAT(client_.ask({"GET", task}), StartsWith("-NOT_FOUND "));
}

}  // namespace
}  // namespace baton::server
