// Eight instances of the example service on a thousand streams, and all that can happen to them: killed,
// suspended, sent home, hired, and a database that crashes under them. Then nothing may be lost, done twice,
// out of order, or have had two holders at once. A run in which too little went wrong does not count.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/crash/child.h"
#include "tests/served.h"
#include "tests/stream/chaos.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

// The database itself watches: a stream that passes on before its lease is over, and an order that comes
// before its predecessor.
constexpr const char* kWatch = R"sql(
  update wh_settings set setting_value = 1 where setting_key = 'retry_seconds';
  create table wrongs (what text);
  create function note_wrong() returns trigger language plpgsql as $$
  begin insert into wrongs values (tg_argv[0] || ': ' || new::text); return new; end $$;
  create trigger two_holders after update on wh_streams for each row
    when (new.owner is not null and new.epoch <> old.epoch and old.owner is not null and old.lease_until > now())
    execute function note_wrong('two holders');
  create trigger older_holder after update on wh_streams for each row when (new.epoch < old.epoch)
    execute function note_wrong('an epoch went back');
  create trigger out_of_order after update on wh_messages for each row when (new.error like '%does not follow%')
    execute function note_wrong('out of order');
)sql";

int number(const std::string& url, const std::string& sql) { return std::atoi(ask(url, sql).c_str()); }

// S9, S10, S16, S18, S22
TEST(Chaos, LosesNothingMixesNothingAndLetsNobodyHoldWhatAnotherHolds) {
  const bool is_long = std::getenv("BATON_LONG") != nullptr;
  const int streams = 1000, orders = is_long ? 40 : 2;
  const std::size_t faults_min = is_long ? 100 : 12;
  const unsigned seed = std::getenv("BATON_SEED")
                            ? static_cast<unsigned>(std::atoi(std::getenv("BATON_SEED")))
                            : std::random_device{}();
  SCOPED_TRACE("BATON_SEED=" + std::to_string(seed));
  const std::string url = empty_database();
  ASSERT_EQ(
      crash::run({.command = {BATON_ORDERS, "open", url, std::to_string(streams), std::to_string(orders)}})
          .exit.code,
      0);
  tell(url, kWatch);
  const int total = streams * orders;
  const char* const kShipped = "select coalesce(sum(shipped), 0)::text from customers";
  const char* const kSteps = "select sum(paid + shipped)::text from customers";

  stream::Chaos chaos({BATON_ORDERS, "work", url}, seed);
  std::size_t struck = 0;
  for (int done = 0; done < 2 * total || struck < faults_min || !chaos.has_done_everything();) {
    if (++struck % 10 == 5) {
      cluster().stop();
      cluster().start();
      ++chaos.faults["database crashed"];
    } else {
      chaos.strike();
    }
    // Something has to be done between two blows, unless nobody is left to do it.
    const int before = done;
    eventually(
        [&] {
          return (done = number(url, kSteps)) > before + total / (is_long ? 80 : 20) || done == 2 * total;
        },
        is_long ? 3'000 : 1'500);
  }
  chaos.make_peace();
  EXPECT_TRUE(eventually([&] { return number(url, "select count(*)::text from wh_messages") == 0; }, 120'000))
      << ask(url,
             "select string_agg(concat_ws(' ', lane, seq, failures, deliveries, error), '; ') from "
             "wh_messages");
  EXPECT_EQ(number(url, kShipped), total);
  EXPECT_EQ(number(url, "select (-sum(balance))::text from customers"), 5 * total);
  EXPECT_EQ(number(url, "select count(*)::text from letters"), total);
  EXPECT_EQ(number(url, "select count(*)::text from wh_dead_letters"), 0);
  EXPECT_EQ(ask(url, "select string_agg(what, '; ') from (select what from wrongs limit 5) as w"), "");
  EXPECT_GE(struck, faults_min);
  for (const char* kind : {"killed", "suspended", "left", "joined", "database crashed"})
    EXPECT_GE(chaos.faults[kind], 1) << kind << ": too little went wrong for this run to count";
  std::printf("%d orders in %d streams, seed %u:%s\n", total, streams, seed, chaos.summary().c_str());
}

}  // namespace
}  // namespace baton::stream
