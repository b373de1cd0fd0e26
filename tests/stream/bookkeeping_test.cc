// What is written down beside the messages so that nobody has to count them, and the short cuts that rest on
// it.
#include <gtest/gtest.h>

#include <random>

#include "postgres/work_coordinator.h"
#include "tests/stream/people.h"
#include "tests/stream/postgres_backend.h"

namespace baton::stream {
namespace {

constexpr const char* kMiscounted = R"sql(
  select count(*)::text from wh_streams s
  cross join lateral (select count(*) as messages, coalesce(sum(m.bytes), 0) as bytes,
                             count(*) filter (where m.seq <= s.given_seq and m.settled_epoch is distinct from s.epoch) as open,
                             bool_or(m.scheduled_for is not null) as retried
                      from wh_messages m where m.stream_no = s.stream_no) as real
  where (s.pending, s.bytes) <> (real.messages, real.bytes)
     or s.outstanding <> case when s.owner is null then 0 else real.open end
     or (real.retried and not s.retried)
     or (s.ready_at is null) <> (real.messages = 0)
)sql";

// S19: a claim goes by these numbers, so that it need not look at what it does not hand out.
TEST(TheBookkeepingOf, AStreamIsWhatItsMessagesAddUpTo) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(postgres::DatabaseOptions{.url = url});
  for (const unsigned number : {1u, 2u}) granted(coordinator.heartbeat(named(number)));
  std::minstd_rand dice(7);
  const auto below = [&](unsigned bound) { return static_cast<unsigned>(dice() % bound); };
  const auto chance = [&](unsigned percent) { return below(100) < percent; };
  unsigned stored = 0;
  for (int turn = 0; turn < 40; ++turn) {
    std::vector<NewMessage> fresh;
    for (unsigned i = below(12); i > 0; --i) fresh.push_back(in_stream(++stored, below(5)));
    granted(coordinator.store(instance(1), Lane::inbox, fresh));
    age(url, minutes(chance(30) ? 6 : 1));  // some leases end, some retries are due
    const InstanceId who = instance(1 + below(2));
    const auto work =
        granted(coordinator.claim(who, {.limits = {.messages = 1 + static_cast<std::int32_t>(below(20))}}));
    std::vector<Completion> done;
    std::vector<Failure> failed;
    const bool whole = chance(30);
    for (const Work& one : work) {
      if (whole || chance(60))
        done.push_back({.held = one.held(), .status = MessageStatus::event_stored});
      else if (chance(50))
        failed.push_back(
            {.held = one.held(), .policy = chance(20) ? FailurePolicy::park : FailurePolicy::block});
      else if (chance(50))
        done.push_back({.held = one.held()});  // given back
    }
    granted(coordinator.complete(who, Lane::inbox, done));
    granted(coordinator.fail(who, Lane::inbox, failed));
    ASSERT_EQ(ask(url, kMiscounted), "0") << "after turn " << turn;
  }
}

// S5: when everything is reported at once it still goes by the claim under which it was handed out.
TEST(AReportOnAllOfAStream, IsRefusedUnderAnOldEpoch) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(postgres::DatabaseOptions{.url = url});
  granted(coordinator.heartbeat(named(1)));
  granted(coordinator.store(instance(1), Lane::inbox, {in_stream(1, 1), in_stream(2, 1), in_stream(3, 2)}));
  const auto lost = granted(coordinator.claim(instance(1)));
  age(url, minutes(6));
  const auto held = granted(coordinator.claim(instance(1)));
  ASSERT_EQ(held.size(), 3u);
  const auto completions = [](const std::vector<Work>& work) {
    std::vector<Completion> all;
    for (const Work& one : work) all.push_back({.held = one.held(), .status = MessageStatus::event_stored});
    return all;
  };
  EXPECT_EQ(granted(coordinator.complete(instance(1), Lane::inbox, completions(lost))),
            std::vector<Verdict>(3, Verdict::lost_lease));
  std::vector<Completion> mixed = completions(held);
  mixed[0].held.epoch = lost[0].epoch;
  EXPECT_EQ(granted(coordinator.complete(instance(1), Lane::inbox, mixed)),
            (std::vector<Verdict>{Verdict::lost_lease, Verdict::ok, Verdict::ok}));
}

// S14: one claim hands out both lanes, and a report is about one of them.
TEST(AReportOnAllOfAStream, LeavesTheOtherLaneAlone) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(postgres::DatabaseOptions{.url = url});
  granted(coordinator.heartbeat(named(1)));
  granted(coordinator.store(instance(1), Lane::outbox, {in_stream(1, 1)}));
  granted(coordinator.store(instance(1), Lane::inbox, {in_stream(2, 1)}));
  const auto work = granted(coordinator.claim(instance(1)));
  ASSERT_EQ(work.size(), 2u);
  EXPECT_EQ(granted(coordinator.complete(instance(1), Lane::inbox,
                                         {{.held = work[1].held(), .status = MessageStatus::event_stored}})),
            all_ok(1));
  EXPECT_EQ(ids(granted(coordinator.resume(instance(1)))), messages({1}));
  EXPECT_EQ(ask(url, kMiscounted), "0");
}

// S17: for people to look at, and gone when the perspective has got past the event.
TEST(TheBookkeepingOf, APerspectiveKeepsItsErrorUntilItGoesOn) {
  const std::string url = migrated_database();
  postgres::WorkCoordinator coordinator(postgres::DatabaseOptions{.url = url});
  WorkBatchRequest request{.instance = named(1)};
  request.new_inbox_messages = {in_stream(1, 1), in_stream(2, 1)};
  for (NewMessage& event : request.new_inbox_messages) event.is_event = true;
  granted(coordinator.process_work_batch(request));
  const auto after = [&](unsigned last, const std::string& error) {
    WorkBatchRequest report{.instance = named(1)};
    auto& list = error.empty() ? report.perspective_completions : report.perspective_failures;
    list = {{.stream = stream(1), .perspective = "totals", .last_event = message(last), .error = error}};
    granted(coordinator.process_work_batch(report));
    return ask(url,
               "select concat_ws(' ', status, error, 'at', right(last_event_id::text, 1)) from "
               "wh_perspective_checkpoints");
  };
  EXPECT_EQ(after(1, ""), "2 at 1");
  EXPECT_EQ(after(2, "it's \"broken\""), "4 it's \"broken\" at 1");
  EXPECT_EQ(after(2, ""), "2 at 2");
}

}  // namespace
}  // namespace baton::stream
