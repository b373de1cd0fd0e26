// Instances that come, go, fall silent and come back; and what an inbox takes and gives.
#include <map>
#include <thread>

#include "tests/stream/people.h"

namespace baton::stream {
namespace {

class AnInstance : public Streams {};
INSTANTIATE_TEST_SUITE_P(On, AnInstance,
                         testing::Values(embedded_backend(), served_backend(), postgres_backend()), name_of);
class Inbox : public Streams {};
INSTANTIATE_TEST_SUITE_P(On, Inbox, testing::Values(embedded_backend(), served_backend(), postgres_backend()),
                         name_of);

// S16: its work is free at once, although the lease would have gone on.
TEST_P(AnInstance, ThatFallsSilentLosesWhatItHolds) {
  Person a = person(1), b = person(2);
  a.store(Lane::inbox, {in_stream(1, 1), loose(2)});
  let_time_pass(seconds(20));
  const std::vector<Work> work = a.claim({.lease = hours(1)});
  ASSERT_EQ(work.size(), 2u);
  let_time_pass(minutes(11));
  EXPECT_EQ(b.arrive().active, 1);
  const std::vector<Work> taken = b.claim();
  ASSERT_EQ(ids(taken), messages({1, 2}));
  EXPECT_EQ(taken[0].deliveries, 2);
}

// S16: also if an instance counts as silent sooner than usual.
TEST_P(AnInstance, ThatCallsInTimeIsNotStale) {
  constexpr Duration kShort = seconds(10);
  Person a = person(1), b = person(2);
  a.claim(), b.claim();  // so that they count
  for (int i = 0; i < 3; ++i) {
    a.arrive(kShort), b.arrive(kShort);
    let_time_pass(seconds(6));  // a database's own clock goes on meanwhile
  }
  EXPECT_EQ(a.arrive(kShort).active, 2);
}

// S16: whatever it says; it need not be a heartbeat.
TEST_P(AnInstance, ThatSaysAnythingIsAlive) {
  Person a = person(1), b = person(2);
  a.store(Lane::inbox, {in_stream(1, 1)});
  let_time_pass(minutes(4));
  const std::vector<Work> work = a.claim({.lease = hours(1)});
  ASSERT_EQ(work.size(), 1u);
  const auto seven_minutes_later = [&](auto say) {
    let_time_pass(minutes(7));
    say();
    let_time_pass(minutes(7));
    b.arrive();
  };
  seven_minutes_later([&] { a.claim(); });
  seven_minutes_later([&] { a.store(Lane::inbox, {loose(2)}); });
  seven_minutes_later(
      [&] { granted(a.coordinator->renew(a.me.id, Lane::inbox, {work[0].held()}, hours(1))); });
  seven_minutes_later([&] { granted(a.coordinator->resume(a.me.id)); });
  EXPECT_EQ(a.done(work), all_ok(1)) << "it was never evicted";
  let_time_pass(minutes(11));
  b.arrive();
  EXPECT_EQ(a.coordinator->claim(a.me.id).error().code, Errc::lease_lost) << "then it fell silent";
}

// S16: nothing of a late call happens.
TEST_P(AnInstance, ThatWasEvictedIsRefused) {
  Person a = person(1), b = person(2);
  let_time_pass(minutes(11));
  b.arrive();
  WorkBatchRequest late = a.request();
  late.new_inbox_messages = {in_stream(1, 1)};
  const auto refused = a.coordinator->process_work_batch(late);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::lease_lost);
  EXPECT_EQ(a.coordinator->store(a.me.id, Lane::inbox, late.new_inbox_messages).error().code,
            Errc::lease_lost);
  EXPECT_EQ(a.coordinator->heartbeat(a.me).error().code, Errc::lease_lost);
  let_time_pass(minutes(1));
  EXPECT_TRUE(b.claim().empty());
}

// S16
TEST_P(AnInstance, ThatLeavesGivesBackWhatItHoldsUnharmed) {
  Person a = person(1), b = person(2);
  a.store(Lane::inbox, {in_stream(1, 1), loose(2)});
  let_time_pass(seconds(20));
  ASSERT_EQ(a.claim().size(), 2u);
  EXPECT_TRUE(a.coordinator->leave(a.me.id));
  EXPECT_EQ(b.arrive().active, 1);
  const std::vector<Work> work = b.claim();
  ASSERT_EQ(ids(work), messages({1, 2}));
  EXPECT_EQ(work[0].deliveries, 1);
  EXPECT_EQ(work[1].deliveries, 1);
}

// S16: under the same id, since it went of its own accord.
TEST_P(AnInstance, ThatLeftMayComeAgain) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1)});
  ASSERT_EQ(a.claim().size(), 1u);
  EXPECT_TRUE(a.coordinator->leave(a.me.id));
  EXPECT_EQ(a.coordinator->claim(a.me.id).error().code, Errc::not_found) << "it is not known any more";
  EXPECT_EQ(a.arrive().active, 1);
  EXPECT_EQ(ids(a.claim()), messages({1}));
}

// S7: every stream is offered to one of them, for any number of them. They come one after the other, each to
// streams that nobody holds yet.
TEST_P(AnInstance, SharesAllStreamsWithTheOthers) {
  constexpr unsigned kInstances = 64;
  constexpr unsigned kStreams = 40;
  const auto coordinator = backend_->connect();
  for (unsigned count = 1; count <= kInstances; ++count) {
    granted(coordinator->heartbeat(named(count)));
    granted(coordinator->claim(instance(count)));  // who has not asked yet has no rank
    std::vector<NewMessage> all;
    for (unsigned i = 1; i <= kStreams; ++i)
      all.push_back(in_stream(kStreams * count + i, kStreams * count + i));
    granted(coordinator->store(instance(1), Lane::inbox, all));
    std::size_t given = 0;
    for (unsigned rank = 0; rank < count; ++rank) {
      for (const Work& work : granted(coordinator->claim(instance(rank + 1)))) {
        ASSERT_EQ(work.partition % static_cast<std::int32_t>(count), static_cast<std::int32_t>(rank));
        ++given;
      }
    }
    ASSERT_EQ(given, kStreams) << "of " << count << " instances";
    const Standing standing = granted(coordinator->heartbeat(named(count)));
    ASSERT_EQ(standing.active, static_cast<std::int32_t>(count));
    ASSERT_EQ(standing.rank, static_cast<std::int32_t>(count) - 1);
  }
}

// S7: it would keep what is its share from the others.
TEST_P(AnInstance, ThatClaimsNothingHasNoRank) {
  const auto coordinator = backend_->connect();
  WorkBatchRequest only_stores{.instance = named(1)};
  only_stores.flags = WorkFlags::skip_inbox_claiming | WorkFlags::skip_outbox_claiming;
  granted(coordinator->process_work_batch(only_stores));
  granted(coordinator->claim(instance(1), {.outbox = false, .inbox = false}));
  EXPECT_EQ(granted(coordinator->heartbeat(named(2))).active, 1);
  granted(coordinator->claim(instance(1), {.outbox = false}));
  EXPECT_EQ(granted(coordinator->heartbeat(named(2))).active, 2);
}

// S8
TEST_P(AnInstance, ThatJoinsTakesNothingFromOthers) {
  Person a = person(5);
  std::vector<NewMessage> all;
  for (unsigned i = 1; i <= 10; ++i) all.push_back(in_stream(i, i));
  a.store(Lane::inbox, all);
  ASSERT_EQ(a.claim().size(), 10u);
  Person b = person(1);
  let_time_pass(seconds(30));
  EXPECT_TRUE(b.claim().empty());
}

TEST_P(AnInstance, HasToMakeItselfKnownFirst) {
  Person a(*backend_, 1);
  EXPECT_EQ(a.coordinator->claim(a.me.id).error().code, Errc::not_found);
  EXPECT_EQ(a.coordinator->store(a.me.id, Lane::inbox, {loose(1)}).error().code, Errc::not_found);
}

// S13
TEST_P(Inbox, TakesAMessageOnceWithinTheWindow) {
  Person a = person(1);
  EXPECT_EQ(a.store(Lane::inbox, {in_stream(1, 1), in_stream(1, 1)}),
            (std::vector{Verdict::ok, Verdict::duplicate}));
  a.done(a.claim());
  EXPECT_EQ(a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1)}),
            (std::vector{Verdict::duplicate, Verdict::ok}));
  const std::vector<Work> work = a.claim();
  ASSERT_EQ(ids(work), messages({2}));
  EXPECT_EQ(work[0].sequence, 2) << "a duplicate leaves no gap";
  a.done(work);
  let_time_pass(days(31));
  Person b = person(2);
  EXPECT_EQ(b.store(Lane::inbox, {in_stream(1, 1)}), all_ok(1));
}

// S13: counted anew, however long it was a dead letter.
TEST_P(Inbox, RemembersWhatCameBackFromTheDeadLetters) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1), loose(2)});
  for (const Work& work : a.claim()) a.fail(work, "never", FailurePolicy::park);
  let_time_pass(days(31));
  Person b = person(2);
  EXPECT_EQ(backend_->replay_dead_letters(), 2);
  let_time_pass(minutes(1));
  const std::vector<Work> work = b.claim();
  ASSERT_EQ(ids(work), messages({1, 2}));
  b.done(work);
  EXPECT_EQ(b.store(Lane::inbox, {in_stream(1, 1), loose(2)}), std::vector(2, Verdict::duplicate));
}

// S13: the outbox remembers nothing but what is there.
TEST_P(Inbox, AloneRemembersWhatItHasSeen) {
  Person a = person(1);
  EXPECT_EQ(a.store(Lane::outbox, {in_stream(1, 1)}), all_ok(1));
  EXPECT_EQ(a.store(Lane::outbox, {in_stream(1, 1)}), std::vector{Verdict::duplicate});
  a.done(a.claim());
  EXPECT_EQ(a.store(Lane::outbox, {in_stream(1, 1)}), all_ok(1));
}

// S3
TEST_P(Inbox, IsLeftAloneWhenTheCallerSaysSo) {
  Person a = person(1);
  WorkBatchRequest request = a.request();
  request.new_inbox_messages = {in_stream(1, 1)};
  request.new_outbox_messages = {in_stream(2, 1)};
  request.flags = WorkFlags::skip_inbox_claiming;
  EXPECT_EQ(ids(a.say(request).work), messages({2}));
  EXPECT_EQ(ids(a.say(a.request()).work), messages({1}));
}

TEST_P(Inbox, HandsOutWhatWasStored) {
  Person a = person(1);
  NewMessage full = in_stream(1, 1);
  full.target = "OnOrder";
  full.type = "Order, Shop";
  full.envelope_type = "Envelope";
  full.data = R"({"a": {"b": [1, "two", null]}})";
  full.metadata = R"({"hop": 1})";
  full.scope = R"({"tenant": "x"})";
  a.store(Lane::inbox, {full});
  const std::vector<Work> work = a.claim();
  ASSERT_EQ(work.size(), 1u);
  EXPECT_EQ(work[0].target, full.target);
  EXPECT_EQ(work[0].type, full.type);
  EXPECT_EQ(work[0].envelope_type, full.envelope_type);
  EXPECT_EQ(work[0].data, full.data);
  EXPECT_EQ(work[0].metadata, full.metadata);
  EXPECT_EQ(work[0].scope, full.scope);
}

// S3: the other lane likewise; and a turn that claims from neither only reports.
TEST_P(Inbox, IsAllThatIsClaimedWhenTheCallerSaysSo) {
  Person a = person(1);
  WorkBatchRequest request = a.request();
  request.new_inbox_messages = {in_stream(1, 1)};
  request.new_outbox_messages = {in_stream(2, 1)};
  request.flags = WorkFlags::skip_inbox_claiming | WorkFlags::skip_outbox_claiming;
  EXPECT_TRUE(a.say(request).work.empty());
  request = a.request();
  request.flags = WorkFlags::skip_outbox_claiming;
  EXPECT_EQ(ids(a.say(request).work), messages({1}));
  EXPECT_EQ(ids(a.say(a.request()).work), messages({2}));
}

// X3: metadata and scope have a limit of their own, and count towards what a claim may bring.
TEST_P(Inbox, CountsAllOfAMessage) {
  Person a = person(1);
  NewMessage full = loose(1);
  full.metadata = '"' + std::string((64 << 10) - 2, 'm') + '"';
  full.scope = full.metadata;
  EXPECT_EQ(a.store(Lane::inbox, {full}), all_ok(1));
  full.id = message(2);
  EXPECT_EQ(a.store(Lane::inbox, {full}), all_ok(1));
  EXPECT_EQ(a.claim({.limits = {.bytes = 150'000}}).size(), 1u);
  full.id = message(3);
  full.scope += ' ';
  EXPECT_EQ(a.coordinator->store(a.me.id, Lane::inbox, {full}).error().code, Errc::too_large);
}

// X3: what streams bring leaves less for messages without one.
TEST_P(Inbox, GivesNoMoreThanTheLimitOfBytes) {
  Person a = person(1);
  NewMessage ordered = in_stream(1, 1), free = loose(2);
  ordered.data = free.data = '"' + std::string(998, 'd') + '"';
  a.store(Lane::inbox, {ordered, free});
  EXPECT_EQ(ids(a.claim({.limits = {.bytes = 1500}})), messages({1}));
  EXPECT_EQ(ids(a.claim({.limits = {.bytes = 500}})), messages({2})) << "never nothing";
}

// S20: a report frees the reporter's hands, and nobody else's.
TEST_P(AnInstance, IsNotWokenByAReportThatBringsNoWork) {
  Person a = person(1), b = person(2);
  b.claim();
  b.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1), in_stream(3, 2)});
  let_time_pass(minutes(1));
  const std::vector<Work> work = b.claim();
  ASSERT_EQ(work.size(), 3u);
  a.claim();
  while (granted(a.coordinator->wait_for_work(milliseconds(1)))) a.claim();
  b.done({work[0]});
  b.store(Lane::inbox, {in_stream(4, 1)});
  b.fail(work[2]);
  EXPECT_FALSE(granted(a.coordinator->wait_for_work(milliseconds(1))));
  b.store(Lane::inbox, {loose(5)});
  EXPECT_TRUE(granted(a.coordinator->wait_for_work(minutes(1))));
}

// S20: and not before the time is up if there is none.
TEST_P(AnInstance, IsWokenWhenThereIsWork) {
  Person a = person(1), b = person(2);
  EXPECT_TRUE(a.claim().empty());
  granted(
      a.coordinator->wait_for_work(milliseconds(1)));  // whoever begins to listen may have missed something
  EXPECT_FALSE(granted(a.coordinator->wait_for_work(milliseconds(1))));
  b.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 2), in_stream(3, 3), in_stream(4, 4)});
  EXPECT_TRUE(granted(a.coordinator->wait_for_work(minutes(1)))) << "it came while nobody waited";
  a.claim();
  std::jthread storing([&] { b.store(Lane::inbox, {loose(5)}); });
  EXPECT_TRUE(granted(a.coordinator->wait_for_work(minutes(1))));
  storing.join();
  EXPECT_EQ(ids(a.claim()), messages({5}));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(granted(a.coordinator->wait_for_work(minutes(10), stop.get_token())));
}

}  // namespace
}  // namespace baton::stream
