// Handlers whose effect, completion and messages are one transaction.
#include "postgres/transaction.h"

#include <gtest/gtest.h>

#include <csignal>
#include <stdexcept>
#include <thread>

#include "stream/fresh_uuid.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

using postgres::Statement;
using postgres::Transaction;

constexpr Statement kCount{"count", "update totals set amount = amount + 1"};
constexpr const char* kState =
    "select concat_ws(' ', amount, (select count(*) from wh_inbox), (select count(*) from wh_outbox)) from "
    "totals";

struct Shop {
  const std::string url = [] {
    std::string made = migrated_database();
    tell(made, "create table totals (amount integer); insert into totals values (0)");
    return made;
  }();
  postgres::WorkCoordinator coordinator{{.url = url}};
  postgres::Transactions transactions{{.url = url}};

  // Instance 1 holds one message.
  Work claimed() {
    granted(coordinator.heartbeat({.id = instance(1), .service = "orders"}));
    granted(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1)}));
    age(url, minutes(1));
    return granted(coordinator.claim(instance(1))).at(0);
  }
};

Outcome count_and_tell(Transaction& transaction, const Work& work) {
  if (auto counted = transaction.run(kCount); !counted) return failed(counted.error().message);
  transaction.send(
      {.id = {fresh_uuid()}, .stream = work.stream, .target = "mail", .type = "Counted", .data = "{}"});
  return done();
}

// S21
TEST(AHandlerInATransaction, CommitsItsEffectItsCompletionAndWhatItSends) {
  Shop shop;
  const Work work = shop.claimed();
  const Handler handler = shop.transactions.handler(count_and_tell);
  EXPECT_EQ(handler({.work = work, .instance = instance(1)}).kind, Outcome::Kind::reported);
  EXPECT_EQ(ask(shop.url, kState), "1 0 1");
  EXPECT_EQ(handler({.work = work, .instance = instance(1)}).kind, Outcome::Kind::given_back) << "it is done";
  EXPECT_EQ(ask(shop.url, kState), "1 0 1");
}

// S21
TEST(AHandlerInATransaction, ChangesNothingWhenItsLeaseWasLost) {
  Shop shop;
  const Work work = shop.claimed();
  age(shop.url, minutes(6));
  const Work taken = granted(shop.coordinator.claim(instance(1))).at(0);
  const Handler handler = shop.transactions.handler(count_and_tell);
  EXPECT_EQ(handler({.work = work, .instance = instance(1)}).kind, Outcome::Kind::given_back);
  EXPECT_EQ(ask(shop.url, kState), "0 1 0");
  EXPECT_EQ(handler({.work = taken, .instance = instance(1)}).kind, Outcome::Kind::reported);
  EXPECT_EQ(ask(shop.url, kState), "1 0 1");
}

// S21
TEST(AHandlerInATransaction, UndoesWhatItDidWhenItFailsOrThrows) {
  Shop shop;
  const Work work = shop.claimed();
  const Handler fails = shop.transactions.handler([](Transaction& transaction, const Work& one) {
    (void)count_and_tell(transaction, one);
    return failed("no");
  });
  const Handler throws = shop.transactions.handler([](Transaction& transaction, const Work& one) -> Outcome {
    (void)count_and_tell(transaction, one);
    throw std::runtime_error("no");
  });
  const Handling handling{.work = work, .instance = instance(1)};
  EXPECT_EQ(fails(handling).kind, Outcome::Kind::failed);
  EXPECT_THROW(throws(handling), std::runtime_error);
  EXPECT_EQ(ask(shop.url, kState), "0 1 0");
  EXPECT_EQ(shop.transactions.handler(count_and_tell)(handling).kind, Outcome::Kind::reported)
      << "neither left anything behind";
}

// S21: somebody who is gone in the middle of it holds nobody up for long.
TEST(AHandlerInATransaction, IsUndoneWhenItStandsStillForTooLong) {
  Shop shop;
  const Work work = shop.claimed();
  postgres::Transactions impatient({.url = shop.url, .transaction_idle_max = milliseconds(50)});
  const Handler handler = impatient.handler([&](Transaction& transaction, const Work& one) {
    const Outcome outcome = count_and_tell(transaction, one);
    tell(shop.url, "update totals set amount = amount + 10");  // waits for the row, which ours has locked
    return outcome;
  });
  const Outcome outcome = handler({.work = work, .instance = instance(1)});
  EXPECT_EQ(outcome.kind, Outcome::Kind::failed) << "one that is always too slow must not go on for ever";
  EXPECT_NE(outcome.error.find("stood still"), std::string::npos) << outcome.error;
  EXPECT_EQ(ask(shop.url, kState), "10 1 0");
}

// S21
TEST(AHandlerInATransaction, IsNoticedByTheServerWhenItsHostIsGone) {
  Shop shop;
  const Work work = shop.claimed();
  std::string settings;
  const Handler handler = shop.transactions.handler([&](Transaction& transaction, const Work&) {
    auto rows = transaction.run(
        {"settings",
         "select concat_ws(' ', current_setting('idle_in_transaction_session_timeout'), "
         "(select string_agg(name, ' ' order by name) from pg_settings where source = 'session' "
         "and name like 'tcp_keepalives%'))"});
    settings = rows ? std::string(rows->text(0, 0)) : rows.error().message;
    return done();
  });
  EXPECT_EQ(handler({.work = work, .instance = instance(1)}).kind, Outcome::Kind::reported);
  EXPECT_EQ(settings, "5min tcp_keepalives_count tcp_keepalives_idle tcp_keepalives_interval");
}

// S18, S21: nor does a database that says nothing hold the handler up.
TEST(AHandlerInATransaction, IsGivenUpWhenTheDatabaseDoesNotAnswer) {
  Shop shop;
  const Work work = shop.claimed();
  auto blocker = postgres::Connection::open(shop.url, seconds(5));
  ASSERT_TRUE(blocker && (*blocker)->execute("begin; lock totals"));
  postgres::Transactions impatient({.url = shop.url, .call_max = milliseconds(100)});
  const Handler handler = impatient.handler([&](Transaction& transaction, const Work&) {
    const auto counted = transaction.run(kCount);
    EXPECT_EQ(counted ? Errc::closed : counted.error().code, Errc::outcome_unknown);
    const auto again = transaction.run(kCount);
    EXPECT_EQ(again ? Errc::closed : again.error().code, Errc::unavailable)
        << "it might get the answer to the one before";
    return done();
  });
  EXPECT_EQ(handler({.work = work, .instance = instance(1)}).kind, Outcome::Kind::given_back);
}

// Makes the database say what it says in trouble.
constexpr const char* kTroubleMaker =
    "create function make_trouble(state text) returns integer language plpgsql as "
    "$$ begin raise exception using errcode = state, message = 'trouble'; end $$";

// S15, S21: whatever the handler makes of it, the message is not to blame for a full disk or a deadlock.
TEST(AHandlerInATransaction, GivesBackItsMessageWhenTheDatabaseIsInTrouble) {
  Shop shop;
  const Work work = shop.claimed();
  tell(shop.url, kTroubleMaker);
  postgres::Transactions quick(
      {.url = shop.url, .backoff_min = milliseconds(1), .backoff_max = milliseconds(1)});
  enum class Manner { fails, goes_on, throws };
  const auto outcome_of = [&](const std::string& state, Manner manner) {
    const std::string sql = "select make_trouble('" + state + "')";
    const Handler handler = quick.handler([&](Transaction& transaction, const Work& one) {
      (void)count_and_tell(transaction, one);
      const auto asked = transaction.run({"trouble", sql.c_str()});
      EXPECT_FALSE(asked);
      if (manner == Manner::throws) throw std::runtime_error("no");
      return manner == Manner::fails ? failed("no") : done();
    });
    return handler({.work = work, .instance = instance(1)}).kind;
  };
  for (const char* state : {"53100", "53200", "25006", "40001", "40P01", "57P01"}) {
    for (const Manner manner : {Manner::fails, Manner::goes_on, Manner::throws})
      EXPECT_EQ(outcome_of(state, manner), Outcome::Kind::given_back) << state;
  }
  EXPECT_EQ(outcome_of("53400", Manner::fails), Outcome::Kind::failed) << "a limit for each statement";
  EXPECT_EQ(outcome_of("22012", Manner::fails), Outcome::Kind::failed);
  EXPECT_EQ(outcome_of("22012", Manner::goes_on), Outcome::Kind::failed);
  EXPECT_EQ(ask(shop.url, kState), "0 1 0");
}

// S15, S21: otherwise a message that makes the database crash would do so for ever.
TEST(AHandlerInATransaction, FailsWhenItsStatementEndsTheConnection) {
  Shop shop;
  const Work work = shop.claimed();
  const Handler handler = shop.transactions.handler([](Transaction& transaction, const Work&) {
    const auto slept = transaction.run({"sleep", "select pg_sleep(600)"});
    return slept ? done() : failed(slept.error().message);
  });
  std::jthread crasher([&] {
    std::string pid;
    while (pid.empty()) {
      pid = ask(shop.url,
                "select coalesce((select pid::text from pg_stat_activity where state = 'active' and query = "
                "'select pg_sleep(600)'), '')");
    }
    ::kill(std::stoi(pid), SIGKILL);
  });
  EXPECT_EQ(handler({.work = work, .instance = instance(1)}).kind, Outcome::Kind::failed);
  crasher.join();
  cluster().stop();  // when it notices the crash, it would end everybody's connections
  cluster().start();
}

// S21: nor do messages become dead letters because a column was added.
TEST(AHandlerInATransaction, BearsThatItsTablesAreChanged) {
  Shop shop;
  granted(shop.coordinator.heartbeat({.id = instance(1), .service = "orders"}));
  granted(shop.coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1), in_stream(2, 2)}));
  age(shop.url, minutes(1));
  const std::vector<Work> work = granted(shop.coordinator.claim(instance(1)));
  ASSERT_EQ(work.size(), 2u);
  const Handler handler = shop.transactions.handler([](Transaction& transaction, const Work&) {
    const auto all = transaction.run({"all", "select * from totals"});
    return all ? done() : failed(all.error().message);
  });
  EXPECT_EQ(handler({.work = work[0], .instance = instance(1)}).kind, Outcome::Kind::reported);
  tell(shop.url, "alter table totals add column comment text");
  EXPECT_EQ(handler({.work = work[1], .instance = instance(1)}).kind, Outcome::Kind::given_back);
  EXPECT_EQ(handler({.work = work[1], .instance = instance(1)}).kind, Outcome::Kind::reported);
}

// S21, S22: a lease that is lost, or a processor that drains, does not wait for a statement that does.
TEST(AHandlerInATransaction, IsStoppedInTheMiddleOfAStatement) {
  Shop shop;
  const Work work = shop.claimed();
  auto blocker = postgres::Connection::open(shop.url, seconds(5));
  ASSERT_TRUE(blocker && (*blocker)->execute("begin; lock totals"));
  const Handler handler = shop.transactions.handler(count_and_tell);
  std::stop_source lost;
  std::jthread stopper([&] {
    while (ask(shop.url, "select count(*)::text from pg_locks where not granted") == "0")
      std::this_thread::yield();
    lost.request_stop();
  });
  EXPECT_EQ(handler({.work = work, .instance = instance(1), .lost = lost.get_token()}).kind,
            Outcome::Kind::given_back);
  ASSERT_TRUE((*blocker)->execute("commit"));
  EXPECT_EQ(handler({.work = work, .instance = instance(1)}).kind, Outcome::Kind::reported);
}

// S21, S23: otherwise nobody would know why messages come back again and again.
TEST(AHandlerInATransaction, SaysWhyNothingHappens) {
  std::vector<Errc> troubles;
  postgres::Transactions nowhere({.url = "host=/nowhere user=baton", .backoff_max = milliseconds(1)},
                                 kPartitions, [&](const Error& error) { troubles.push_back(error.code); });
  const Handler handler = nowhere.handler([](Transaction&, const Work&) { return done(); });
  const Work work;
  EXPECT_EQ(handler({.work = work, .instance = instance(1)}).kind, Outcome::Kind::given_back);
  EXPECT_EQ(troubles, std::vector{Errc::unavailable});
}

// S21: what no repetition mends is a failure, which ends in a dead letter and not in a circle.
TEST(AHandlerInATransaction, FailsWhenItSendsNonsense) {
  Shop shop;
  const Work work = shop.claimed();
  const Handler handler = shop.transactions.handler([](Transaction& transaction, const Work&) {
    transaction.send({.id = {fresh_uuid()}, .target = "mail", .type = "Counted", .data = "no JSON"});
    return done();
  });
  EXPECT_EQ(handler({.work = work, .instance = instance(1)}).kind, Outcome::Kind::failed);
  EXPECT_EQ(ask(shop.url, kState), "0 1 0");
}

}  // namespace
}  // namespace baton::stream
