// `baton stream`, as operators use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "postgres/work_coordinator.h"
#include "tests/crash/child.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"
#include "tests/stream/sessions.h"

namespace baton::stream {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct Said {
  int code = 0;
  std::string text, errors;
};

Said baton(std::vector<std::string> words, const std::vector<std::string>& where,
           const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  words.insert(words.begin(), {BATON_PROGRAM, "stream"});
  words.insert(words.end(), where.begin(), where.end());
  const crash::Ran ran = crash::run({.command = words, .environment = environment});
  std::string text;
  for (const std::string& line : ran.lines) text += line + "\n";
  return {ran.exit.code, text, ran.errors};
}

// S20
TEST(BatonStream, MigratesADatabaseOnce) {
  const std::string url = empty_database();
  const std::vector<std::string> there{"--database", url};
  const Said before = baton({"status"}, there);
  EXPECT_EQ(before.code, 1);
  EXPECT_THAT(before.errors, HasSubstr("baton stream migrate"));
  EXPECT_THAT(baton({"migrate"}, there).text, HasSubstr("the database is at version"));
  EXPECT_THAT(baton({"migrate"}, there).text, HasSubstr("already"));
  EXPECT_EQ(baton({"status"}, there).code, 0);
  EXPECT_EQ(baton({"status"}, {"--database", "host=/nowhere"}).code, 69);
  EXPECT_THAT(baton({"migrate"}, {}).errors, HasSubstr("which database?"));
  EXPECT_EQ(baton({"migrate"}, {}).code, 64);
  EXPECT_EQ(baton({"status"}, {"--connect", "127.0.0.1:1"}).code, 69);
}

// S19: from a timer, for services that do not do it themselves.
TEST(BatonStream, ForgetsWhatIsPastItsTime) {
  const std::string url = migrated_database();
  tell(url, "insert into wh_evicted_instances values (gen_random_uuid(), now() - interval '8 days')");
  EXPECT_THAT(baton({"maintain"}, {"--database", url}).text, HasSubstr("forgot 1 row"));
  EXPECT_THAT(baton({"maintain"}, {"--database", url, "--json"}).text, HasSubstr("\"forgotten\":0"));
  EXPECT_THAT(baton({"maintain"}, {}).errors, HasSubstr("which database?"));
}

// S20, S23: each has what the other waits for, and it is the command that gives way.
TEST(BatonStream, TriesAgainWhenAnotherSessionWasInTheWay) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(postgres::DatabaseOptions{.url = url});
  WorkBatchRequest request{.instance = named(1)};
  request.new_inbox_messages = {in_stream(1, 1), in_stream(2, 2)};
  for (const Work& work : granted(coordinator.process_work_batch(request)).work)
    granted(coordinator.fail(instance(1), Lane::inbox,
                             {{.held = work.held(), .error = "no", .policy = FailurePolicy::park}}));
  const auto locks = [](unsigned number) {
    return "select from wh_streams where stream_id = '" + to_text(stream(number).value) + "' for update";
  };
  const auto blocker = session(url, locks(2));
  const auto other =
      session(url, "set local deadlock_timeout = '1h'; select from wh_dead_letters for update");
  Said said;
  std::jthread purges([&] { said = baton({"dead", "purge", "--all"}, {"--database", url}); });
  until_somebody_waits(url);
  std::jthread needs_both([&] { EXPECT_TRUE(other->execute(locks(1) + "; commit")); });
  until_somebody_waits(url, 2);
  ASSERT_TRUE(blocker->execute("commit"));
  purges.join();
  EXPECT_THAT(said.text, HasSubstr("forgot 2 dead letters")) << said.errors;
}

// A service with somebody who can be asked, and an operator who looks at it from outside.
class AnOperator : public testing::TestWithParam<BackendKind> {
 protected:
  AnOperator() {
    granted(coordinator_->heartbeat({.id = instance(1), .service = "orders", .host = "here"}));
    claim();
  }
  void store(const std::vector<NewMessage>& messages) {
    granted(coordinator_->store(instance(1), Lane::inbox, messages));
  }
  std::vector<Work> claim() { return granted(coordinator_->claim(instance(1))); }
  Said baton(const std::vector<std::string>& words) const {
    return stream::baton(words, backend_->options_of_command());
  }
  std::string why(unsigned number) const { return baton({"why", to_text(message(number).value)}).text; }

  const std::unique_ptr<Backend> backend_ = GetParam().make();
  const std::unique_ptr<WorkCoordinator> coordinator_ = backend_->connect();
};
INSTANTIATE_TEST_SUITE_P(On, AnOperator, testing::Values(postgres_backend(), served_backend()), name_of);

// S23
TEST_P(AnOperator, SeesBacklogInstancesAndDeadLetters) {
  store({in_stream(1, 1), in_stream(2, 1), loose(3)});
  backend_->let_time_pass(minutes(1));
  EXPECT_THAT(baton({"status", "--json"}).text,
              HasSubstr(R"("lane":"inbox","waiting":3,"held":0,"dead":0,"streams":1)"));
  EXPECT_THAT(baton({"status"}).text, ContainsRegex("1m0[0-9]s")) << "the oldest that could be claimed";
  EXPECT_THAT(baton({"lag"}).text, HasSubstr("can be claimed"));
  EXPECT_THAT(baton({"partitions"}).text, HasSubstr(to_text(instance(1).value)));
  EXPECT_THAT(baton({"partitions", "--json"}).text, HasSubstr(R"("streams":1,"messages":2)"));
  const std::string metrics = baton({"metrics"}).text;
  EXPECT_THAT(metrics, HasSubstr("# TYPE baton_stream_messages gauge\n"));
  EXPECT_THAT(metrics,
              HasSubstr("baton_stream_messages{service=\"orders\",lane=\"inbox\",state=\"waiting\"} 3\n"));
  EXPECT_THAT(
      metrics,
      ContainsRegex("baton_stream_oldest_claimable_seconds.service=\"orders\",lane=\"inbox\". 6[0-9]\n"));
  EXPECT_THAT(metrics, HasSubstr("baton_stream_instances{service=\"orders\",state=\"active\"} 1\n"));
  EXPECT_THAT(metrics, ContainsRegex("baton_stream_partition_messages.service=\"orders\",lane=\"inbox\","
                                     "partition=\"[0-9]+\". 2\n"));
  claim();
  EXPECT_THAT(baton({"status", "--json"}).text, HasSubstr(R"("waiting":0,"held":3)"));
  EXPECT_THAT(baton({"lag"}).text, HasSubstr("held by"));
}

// S23
TEST(BatonStream, SaysWhenItHasNotLookedAtEverything) {
  const auto backend = served_backend().make();
  const auto coordinator = backend->connect();
  granted(coordinator->heartbeat({.id = instance(1), .service = "orders", .host = "here"}));
  const auto store = [&](const std::vector<NewMessage>& messages) {
    granted(coordinator->store(instance(1), Lane::inbox, messages));
  };
  constexpr unsigned kLookedAt = 100'000, kAtOnce = 1'000;
  for (unsigned number = 1; number <= kLookedAt;) {
    std::vector<NewMessage> messages;
    while (messages.size() < kAtOnce) messages.push_back(loose(number++));
    store(messages);
  }
  const auto errors = [&](const char* command) {
    const Said said = baton({command}, backend->options_of_command());
    EXPECT_EQ(said.code, 0);
    return said.errors;
  };
  EXPECT_EQ(errors("lag"), "");
  store({in_stream(kLookedAt + 1, 1)});
  EXPECT_THAT(errors("lag"), HasSubstr("this is of the oldest ones"));
  EXPECT_THAT(errors("partitions"), HasSubstr("this is of the oldest ones"));
}

// S23: what the command line says counts more than what the environment does.
TEST(BatonStream, LooksWhereTheCommandLineSays) {
  const std::string url = migrated_database();
  const std::vector<std::pair<std::string, std::string>> here{{"BATON_DATABASE", url}};
  EXPECT_EQ(baton({"status"}, {}, here).code, 0);
  EXPECT_EQ(baton({"status"}, {"--connect", "127.0.0.1:1"}, here).code, 69) << "nobody listens there";
  EXPECT_EQ(baton({"status"}, {"--connect=127.0.0.1:1"}, here).code, 69);
  EXPECT_EQ(baton({"status"}, {"--database", url}, {{"BATON_CONNECT", "127.0.0.1:1"}}).code, 0);
  const Said both = baton({"status"}, {"--connect", "127.0.0.1:1", "--database", url});
  EXPECT_EQ(both.code, 64);
  EXPECT_THAT(both.errors, HasSubstr("give one of them"));
}

// S23
TEST_P(AnOperator, SeesWhoOnlyStores) {
  granted(coordinator_->heartbeat({.id = instance(2), .service = "orders"}));
  const std::string status = baton({"status"}).text;
  EXPECT_THAT(status, ContainsRegex("HELD +DEAD +STREAMS +HELD STREAMS +PARKED STREAMS"));
  EXPECT_THAT(status, ContainsRegex(to_text(instance(1).value) + " +0 +here"));
  EXPECT_THAT(status, ContainsRegex(to_text(instance(2).value) + " +- +-"));
  EXPECT_THAT(baton({"status", "--json"}).text, HasSubstr(R"("rank":null)"));
  ASSERT_TRUE(coordinator_->leave(instance(1)));
  granted(coordinator_->store(instance(2), Lane::inbox, {in_stream(1, 1)}));
  EXPECT_THAT(why(1), HasSubstr("no: 1 active, but none has asked for work"));
}

// S23
TEST_P(AnOperator, IsToldThatNobodyIsAtWork) {
  store({in_stream(1, 1)});
  EXPECT_THAT(why(1), HasSubstr("yes: 1 active"));
  backend_->let_time_pass(minutes(20));
  EXPECT_THAT(why(1), HasSubstr("no: the last one was heard of 20 min ago"));
  EXPECT_THAT(why(9), HasSubstr("nowhere"));
  const Said nonsense = baton({"why", "x"});
  EXPECT_EQ(nonsense.code, 64);
  EXPECT_THAT(nonsense.errors, HasSubstr("'x' is not the id of a message"));
}

// S23
TEST_P(AnOperator, IsToldWhoHoldsAMessageAndForHowLong) {
  store({in_stream(1, 1), loose(2)});
  EXPECT_THAT(why(1), HasSubstr("is offered to " + to_text(instance(1).value) + " first"));
  EXPECT_THAT(why(1), HasSubstr("nobody holds it"));
  EXPECT_THAT(why(2), HasSubstr("it belongs to no stream"));
  backend_->let_time_pass(minutes(1));
  claim();
  EXPECT_THAT(why(1), HasSubstr("yes: by " + to_text(instance(1).value)));
  EXPECT_THAT(why(1), ContainsRegex("for (5 min|4 min [0-9]+ s) more"));
  backend_->let_time_pass(minutes(20));
  EXPECT_THAT(why(1), HasSubstr("whoever asks next has it"));
  EXPECT_THAT(why(1), HasSubstr("is evicted by the next call"));
}

// S10, S23: a letter that comes back while others of its stream are worked on waits, as the status says.
TEST_P(AnOperator, IsToldThatAStreamIsHeldAndAMessageOfItIsNot) {
  store({in_stream(1, 1), in_stream(2, 1)});
  backend_->let_time_pass(minutes(1));
  const Failure failure{.held = claim().at(0).held(), .error = "no", .policy = FailurePolicy::park};
  granted(coordinator_->fail(instance(1), Lane::inbox, {failure}));
  EXPECT_THAT(baton({"dead", "replay", "--all"}).text, HasSubstr("put back 1 dead letter"));
  EXPECT_THAT(baton({"status", "--json"}).text, HasSubstr(R"("waiting":1,"held":1)"));
  const std::string holder = to_text(instance(1).value);
  EXPECT_THAT(why(1), HasSubstr("no, but its stream is held: by " + holder));
  EXPECT_THAT(why(1), HasSubstr("no: it is the first of its stream"));
  EXPECT_THAT(why(2), HasSubstr("yes: by " + holder));
  EXPECT_THAT(why(2), HasSubstr("no: it was handed out"));
  backend_->let_time_pass(minutes(6));
  EXPECT_THAT(why(1), HasSubstr("whoever asks next has it"));
  EXPECT_THAT(why(2), HasSubstr("yes: message " + to_text(message(1).value)));
}

// S15, S20: more than a page has, and more than a coordinator takes at once.
TEST_P(AnOperator, NamesAsManyDeadLettersAsThereAre) {
  constexpr unsigned kLetters = 1'030;
  std::vector<NewMessage> messages;
  for (unsigned i = 1; i <= kLetters; ++i) messages.push_back(loose(i));
  store(messages);
  const auto letters = [&](const char* action) {
    const ClaimLimits limits{.streams = kLetters, .messages = kLetters};
    std::vector<Failure> failures;
    for (const Work& work : granted(coordinator_->claim(instance(1), {.limits = limits})))
      failures.push_back({.held = work.held(), .error = "no", .policy = FailurePolicy::park});
    granted(coordinator_->fail(instance(1), Lane::inbox, failures));
    std::vector<std::string> words{"dead", action};
    const std::string listed = baton({"dead", "list", "--json"}).text;
    constexpr std::string_view kName = "\"dead_letter_id\":";
    for (std::size_t at = 0; (at = listed.find(kName, at)) != std::string::npos;) {
      at += kName.size();
      words.push_back(listed.substr(at, listed.find(',', at) - at));
    }
    EXPECT_EQ(words.size(), 2 + kLetters);
    return words;
  };
  const Said replayed = baton(letters("replay"));
  EXPECT_EQ(replayed.code, 0) << replayed.errors;
  EXPECT_THAT(replayed.text, HasSubstr("put back 1030 dead letters"));
  const Said purged = baton(letters("purge"));
  EXPECT_EQ(purged.code, 0) << purged.errors;
  EXPECT_THAT(purged.text, HasSubstr("forgot 1030 dead letters"));
}

// S23
TEST_P(AnOperator, IsToldWhatIsInTheWay) {
  store({in_stream(1, 1), in_stream(2, 1), in_stream(3, 2), in_stream(4, 2)});
  backend_->let_time_pass(minutes(1));
  const auto work = claim();
  std::vector<Failure> failures;
  for (const Work& one : work) {
    if (one.sequence > 1) continue;
    failures.push_back(
        {.held = one.held(), .error = "it broke", .reason = FailureReason::transport_exception});
    if (one.stream == stream(2)) failures.back().policy = FailurePolicy::park_stream;
  }
  granted(coordinator_->fail(instance(1), Lane::inbox, failures));
  EXPECT_THAT(why(1), HasSubstr("it failed (1 so far), and said: it broke"));
  EXPECT_THAT(why(2), HasSubstr("yes: message " + to_text(message(1).value)));
  const std::string listed = baton({"dead", "list", "--json"}).text;
  const std::size_t at = listed.find(":") + 1;
  const std::string letter = listed.substr(at, listed.find(",") - at);
  EXPECT_THAT(why(3), HasSubstr("it became dead letter " + letter));
  EXPECT_THAT(why(4), HasSubstr("its stream is parked behind dead letter " + letter));
  EXPECT_THAT(baton({"dead", "list"}).text, HasSubstr("it broke"));
  EXPECT_THAT(baton({"dead", "show", letter}).text, HasSubstr(to_text(message(3).value)));
  EXPECT_THAT(baton({"dead", "show", letter}).text, HasSubstr(R"("event_data":{"n": 1})"));
  EXPECT_EQ(baton({"dead", "show", "123456"}).code, 1);
  EXPECT_EQ(baton({"dead", "replay", "x"}).code, 64);
  EXPECT_EQ(baton({"dead", "purge"}).code, 64) << "it does not say which";
  for (const char* action : {"replay", "purge"}) {
    const Said unknown = baton({"dead", action, "123456", "123457"});
    EXPECT_EQ(unknown.code, 1);
    EXPECT_THAT(unknown.errors, HasSubstr("there is no dead letter 123456, 123457"));
  }
  const Said young = baton({"dead", "purge", letter, "--older-than", "7d"});
  EXPECT_EQ(young.code, 1);
  EXPECT_THAT(young.errors, HasSubstr("have not been dead for that long"));
  EXPECT_THAT(baton({"dead", "replay", letter}).text, HasSubstr("put back 1 dead letter"));
  EXPECT_EQ(baton({"dead", "replay", letter}).code, 1) << "it is there no more";
  EXPECT_THAT(why(4), Not(HasSubstr("parked")));
  EXPECT_THAT(baton({"dead", "purge", "--all", "--json"}).text, HasSubstr(R"({"purged":0})"));
}

}  // namespace
}  // namespace baton::stream
