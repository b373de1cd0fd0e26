// What becomes of what instances report, item by item.
#include "tests/stream/people.h"

namespace baton::stream {
namespace {

class Report : public Streams {};
INSTANTIATE_TEST_SUITE_P(On, Report,
                         testing::Values(embedded_backend(), served_backend(), postgres_backend()), name_of);

// S1, S2, S5: completions come before the claim, so the stream's next message is in the same answer.
TEST_P(Report, AndTheNextWorkAreOneCall) {
  Person a = person(1);
  WorkBatchRequest request = a.request();
  request.new_outbox_messages = {in_stream(1, 1)};
  request.new_inbox_messages = {in_stream(1, 1), loose(2)};
  WorkBatch batch = a.say(request);
  EXPECT_EQ(batch.new_outbox_messages, all_ok(1));
  EXPECT_EQ(batch.new_inbox_messages, all_ok(2));
  ASSERT_EQ(ids(batch.work), messages({1, 1, 2}));
  EXPECT_TRUE(has(batch.work[0].flags, WorkFlags::newly_stored));

  WorkBatchRequest next = a.request();
  next.outbox_completions = {{.held = batch.work[0].held(), .status = MessageStatus::published}};
  next.inbox_completions = {{.held = batch.work[1].held(), .status = MessageStatus::event_stored},
                            {.held = {message(99)}, .status = MessageStatus::event_stored}};
  next.inbox_failures = {{.held = batch.work[2].held(), .error = "no"}};
  next.new_outbox_messages = {in_stream(5, 1)};
  const WorkBatch answer = a.say(next);
  EXPECT_EQ(answer.outbox_completions, all_ok(1));
  EXPECT_EQ(answer.inbox_completions, (std::vector{Verdict::ok, Verdict::unknown}));
  EXPECT_EQ(answer.inbox_failures, all_ok(1));
  EXPECT_EQ(ids(answer.work), messages({5}));
}

// S5: acks come back even when no work does.
TEST_P(Report, IsAnsweredWithoutWorkToo) {
  Person a = person(1);
  WorkBatchRequest request = a.request();
  request.outbox_completions = {{.held = {message(1)}, .status = MessageStatus::published}};
  const WorkBatch batch = a.say(request);
  EXPECT_EQ(batch.outbox_completions, std::vector{Verdict::unknown});
  EXPECT_TRUE(batch.work.empty());
}

// S5, S25
TEST_P(Report, IsOnlyTakenFromTheHolder) {
  Person a = person(1), b = person(2);
  a.store(Lane::outbox, {in_stream(1, 1), in_stream(2, 1)});
  let_time_pass(seconds(20));
  const std::vector<Work> old = a.claim({.lease = seconds(2)});
  ASSERT_EQ(old.size(), 2u);
  let_time_pass(seconds(20));
  const std::vector<Work> now = b.claim();
  ASSERT_EQ(now.size(), 2u);

  EXPECT_EQ(a.done({old[0]}), std::vector{Verdict::lost_lease});
  EXPECT_EQ(a.fail(old[0]), Verdict::lost_lease);
  EXPECT_EQ(granted(a.coordinator->renew(a.me.id, Lane::outbox, {old[0].held(), {message(7)}})),
            (std::vector{Verdict::lost_lease, Verdict::unknown}));
  EXPECT_EQ(granted(b.coordinator->complete(b.me.id, Lane::outbox,
                                            {{.held = old[0].held(), .status = MessageStatus::published}})),
            std::vector{Verdict::lost_lease})
      << "under the old epoch it says nothing";
  EXPECT_EQ(granted(b.coordinator->complete(b.me.id, Lane::outbox,
                                            {{.held = {message(1)}, .status = MessageStatus::published}})),
            all_ok(1))
      << "without an epoch whoever holds it speaks";
  EXPECT_EQ(granted(a.coordinator->complete(a.me.id, Lane::outbox,
                                            {{.held = {message(2)}, .status = MessageStatus::published}})),
            std::vector{Verdict::lost_lease});
  EXPECT_EQ(b.done({now[1]}), all_ok(1));
}

// E6: until somebody else has claimed it, it is still the holder's.
TEST_P(Report, AfterTheLeaseIsStillTheHolders) {
  Person a = person(1);
  a.store(Lane::outbox, {in_stream(1, 1)});
  const std::vector<Work> work = a.claim({.lease = seconds(2)});
  let_time_pass(minutes(1));
  EXPECT_EQ(a.done(work), all_ok(1));
}

// S14
TEST_P(Report, InPartLeavesTheMessageToBeClaimed) {
  Person a = person(1);
  a.store(Lane::outbox, {in_stream(1, 1)});
  std::vector<Work> work = a.claim();
  EXPECT_EQ(a.complete(work, MessageStatus::event_stored), all_ok(1));
  work = a.claim();
  ASSERT_EQ(ids(work), messages({1}));
  EXPECT_EQ(work[0].status, MessageStatus::stored | MessageStatus::event_stored);
  EXPECT_EQ(work[0].deliveries, 1);
  EXPECT_EQ(a.done(work), all_ok(1));
  EXPECT_TRUE(a.claim().empty());
}

// E6, S14: status 0 gives back, and is not held against the message.
TEST_P(Report, OfNothingGivesTheMessageBack) {
  Person a = person(1), b = person(2);
  a.store(Lane::inbox, {in_stream(1, 1)});
  let_time_pass(seconds(20));
  EXPECT_EQ(a.complete(a.claim(), MessageStatus::none), all_ok(1));
  let_time_pass(seconds(20));
  const std::vector<Work> work = b.claim();
  ASSERT_EQ(ids(work), messages({1}));
  EXPECT_EQ(work[0].status, MessageStatus::stored);
  EXPECT_EQ(work[0].deliveries, 1);
}

// S14, S15: whatever it says, and what was achieved all the same.
TEST_P(Report, OfAFailureKeepsWhatItSaysExactly) {
  Person a = person(1);
  const std::string error = "\"quoted\" it's \\ a\nnew line, \ttab and \u00fc\u2713";
  a.store(Lane::inbox, {in_stream(1, 1)});
  const std::vector<Work> work = a.claim();
  const auto failed = granted(a.coordinator->fail(a.me.id, Lane::inbox,
                                                  {{.held = work[0].held(),
                                                    .completed = MessageStatus::published,
                                                    .error = error,
                                                    .reason = FailureReason::validation_error}}));
  EXPECT_EQ(failed, all_ok(1));
  let_time_pass(seconds(61));
  const std::vector<Work> again = a.claim();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].error, error);
  EXPECT_EQ(again[0].reason, FailureReason::validation_error);
  EXPECT_EQ(again[0].status, MessageStatus::stored | MessageStatus::published | MessageStatus::failed);
}

// S15: each that there is; and that it is not known, if none is said.
TEST_P(Report, OfAFailureKeepsItsReason) {
  Person a = person(1);
  const std::vector reasons{FailureReason::none,
                            FailureReason::transport_not_ready,
                            FailureReason::transport_exception,
                            FailureReason::serialization_error,
                            FailureReason::validation_error,
                            FailureReason::max_attempts_exceeded,
                            FailureReason::lease_expired,
                            FailureReason::event_storage_failure,
                            FailureReason::unknown};
  for (const Lane lane : {Lane::outbox, Lane::inbox}) {
    std::vector<NewMessage> all{in_stream(50, 50)};
    for (unsigned i = 0; i < reasons.size(); ++i) all.push_back(in_stream(1 + i, 1 + i));
    a.store(lane, all);
    ASSERT_EQ(a.claim().size(), all.size());
    std::vector<Failure> failures{{.held = {message(50)}, .error = "why?"}};
    for (unsigned i = 0; i < reasons.size(); ++i)
      failures.push_back({.held = {message(1 + i)}, .error = "", .reason = reasons[i]});
    EXPECT_EQ(granted(a.coordinator->fail(a.me.id, lane, failures)), all_ok(all.size()));
    let_time_pass(seconds(61));
    const std::vector<Work> again = a.claim();
    ASSERT_EQ(again.size(), all.size());
    for (const Work& one : again) {
      const bool is_said = one.message != message(50);
      const auto number = static_cast<std::size_t>(one.message.value.bytes[15]);
      EXPECT_EQ(one.reason, is_said ? reasons[number - 1] : FailureReason::unknown);
    }
    a.done(again);
  }
}

// S18: each call once more, as after a lost reply.
TEST_P(Report, ThatIsRepeatedChangesNothingMore) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1), in_stream(3, 2), in_stream(4, 3)});
  EXPECT_EQ(a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1)}),
            (std::vector{Verdict::duplicate, Verdict::duplicate}));
  const std::vector<Work> work = a.claim();
  ASSERT_EQ(work.size(), 4u);

  EXPECT_EQ(a.fail(work[0]), Verdict::ok);
  EXPECT_EQ(a.fail(work[0]), Verdict::duplicate);
  EXPECT_EQ(a.release({work[1]}), all_ok(1));
  EXPECT_EQ(a.release({work[1]}), std::vector{Verdict::duplicate});
  EXPECT_EQ(a.fail(work[0]), Verdict::duplicate) << "also when the stream is held no more";
  EXPECT_EQ(a.done({work[2]}), all_ok(1));
  EXPECT_EQ(a.done({work[2]}), std::vector{Verdict::unknown});
  EXPECT_EQ(granted(a.coordinator->renew(a.me.id, Lane::inbox, {work[3].held()})), all_ok(1));
  EXPECT_EQ(granted(a.coordinator->renew(a.me.id, Lane::inbox, {work[3].held()})), all_ok(1));
  EXPECT_EQ(a.done({work[3], work[3]}), (std::vector{Verdict::ok, Verdict::duplicate}));

  let_time_pass(seconds(61));
  const std::vector<Work> again = a.claim();
  ASSERT_EQ(ids(again), messages({1, 2}));
  EXPECT_EQ(again[0].failures, 1);
  EXPECT_TRUE(a.coordinator->leave(a.me.id));
  EXPECT_TRUE(a.coordinator->leave(a.me.id));
}

// S4
TEST_P(Report, OfBeingAtWorkHoldsTheStreamForLonger) {
  Person a = person(1), b = person(2);
  a.store(Lane::inbox, {in_stream(1, 1), loose(2)});
  let_time_pass(seconds(20));
  const std::vector<Work> work = a.claim({.lease = seconds(20)});
  ASSERT_EQ(work.size(), 2u);
  let_time_pass(seconds(15));
  EXPECT_EQ(
      granted(a.coordinator->renew(a.me.id, Lane::inbox, {work[0].held(), work[1].held()}, seconds(60))),
      all_ok(2));
  let_time_pass(seconds(50));
  EXPECT_TRUE(b.claim().empty());
  let_time_pass(seconds(30));
  EXPECT_EQ(b.claim().size(), 2u);
}

// S4: two renewals may overtake each other on their way.
TEST_P(Report, OfBeingAtWorkNeverHoldsTheStreamForLess) {
  Person a = person(1), b = person(2);
  a.store(Lane::inbox, {in_stream(1, 1), loose(2)});
  let_time_pass(seconds(20));
  const std::vector<Work> work = a.claim({.lease = minutes(2)});
  ASSERT_EQ(work.size(), 2u);
  EXPECT_EQ(granted(a.coordinator->renew(a.me.id, Lane::inbox, {work[0].held(), work[1].held()}, seconds(5))),
            all_ok(2));
  let_time_pass(minutes(1));
  EXPECT_TRUE(b.claim().empty());
  let_time_pass(minutes(2));
  EXPECT_EQ(b.claim().size(), 2u);
}

// E6
TEST_P(Report, IsStillPossibleForWhoeverAsksWhatItHolds) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1), in_stream(2, 1), loose(3)});
  const std::vector<Work> work = a.claim();
  a.done({work[0]});
  const std::vector<Work> held = granted(a.coordinator->resume(a.me.id));
  EXPECT_EQ(ids(held), messages({2, 3}));
  EXPECT_EQ(a.done(held), all_ok(2));
  EXPECT_TRUE(granted(a.coordinator->resume(a.me.id)).empty());
  EXPECT_EQ(a.coordinator->resume(instance(9)).error().code, Errc::not_found);
}

// E6, X3
TEST_P(Report, IsPossibleOnAllThatAnInstanceHoldsHoweverMuch) {
  Person a = person(1);
  std::vector<NewMessage> all;
  for (unsigned i = 1; i <= 1500; ++i) all.push_back(in_stream(i, 1 + i % 30));
  a.store(Lane::inbox, all);
  ASSERT_EQ(granted(a.coordinator->claim(a.me.id, {.limits = {.messages = 2000}})).size(), 1500u);
  EXPECT_EQ(a.done(granted(a.coordinator->resume(a.me.id))), all_ok(1500));
}

// S17
TEST_P(Report, OfAPerspectiveNeverMovesItPastAnEventThatIsMissing) {
  Person a = person(1);
  std::vector<NewMessage> events = {in_stream(1, 1), in_stream(2, 1), in_stream(3, 1), in_stream(4, 1)};
  for (NewMessage& event : events) event.is_event = true;
  a.store(Lane::outbox, events);
  const auto report = [&](unsigned last, std::vector<MessageId> processed) {
    WorkBatchRequest request = a.request();
    request.perspective_completions = {{.stream = stream(1),
                                        .perspective = "totals",
                                        .last_event = message(last),
                                        .processed = std::move(processed)}};
    return a.say(request).perspective_completions.at(0);
  };
  EXPECT_EQ(report(3, messages({1, 3})), Verdict::ok);
  EXPECT_EQ(report(1, {}), Verdict::duplicate) << "it stands at 1, for 2 is missing";
  EXPECT_EQ(report(2, messages({2})), Verdict::ok);
  EXPECT_EQ(report(3, {}), Verdict::duplicate) << "2 was all that was missing";
  EXPECT_EQ(report(4, {}), Verdict::ok);
  EXPECT_EQ(report(9, {}), Verdict::unknown);
}

// S17: each perspective of a stream stands at a place of its own, and a failure moves none.
TEST_P(Report, OfOnePerspectiveLeavesTheOthersWhereTheyAre) {
  Person a = person(1);
  std::vector<NewMessage> events = {in_stream(1, 1), in_stream(2, 1), in_stream(3, 1)};
  for (NewMessage& event : events) event.is_event = true;
  a.store(Lane::inbox, events);
  const auto report = [&](const char* perspective, unsigned last) -> PerspectiveResult {
    return {.stream = stream(1), .perspective = perspective, .last_event = message(last)};
  };
  WorkBatchRequest request = a.request();
  request.perspective_completions = {report("totals", 3), report("places", 1)};
  EXPECT_EQ(a.say(request).perspective_completions, all_ok(2));

  request.perspective_completions.clear();
  request.perspective_failures = {report("places", 2)};
  request.perspective_failures[0].error = "it broke";
  EXPECT_EQ(a.say(request).perspective_failures, all_ok(1));

  request.perspective_failures.clear();
  request.perspective_completions = {report("totals", 3), report("places", 1), report("places", 2)};
  EXPECT_EQ(a.say(request).perspective_completions,
            (std::vector{Verdict::duplicate, Verdict::duplicate, Verdict::ok}));
}

// S14: a message is done in the lane it was handed out in.
TEST_P(Report, ToTheWrongLaneChangesNothing) {
  Person a = person(1);
  a.store(Lane::inbox, {in_stream(1, 1)});
  let_time_pass(seconds(20));
  const std::vector<Work> work = a.claim();
  ASSERT_EQ(work.size(), 1u);
  EXPECT_EQ(granted(a.coordinator->complete(a.me.id, Lane::outbox,
                                            {{.held = work[0].held(), .status = MessageStatus::published}})),
            std::vector{Verdict::unknown});
  EXPECT_EQ(a.done(work), all_ok(1)) << "it is still held";
}

// S17, S18
TEST_P(Report, OfAReceptorIsKeptOnce) {
  Person a = person(1);
  WorkBatchRequest request = a.request();
  request.receptor_failures = {{.event = message(1), .receptor = "mail", .error = "no"}};
  EXPECT_EQ(a.say(request).receptor_failures, all_ok(1));
  EXPECT_EQ(a.say(request).receptor_failures, std::vector{Verdict::duplicate});
  request.receptor_failures.clear();
  request.receptor_completions = {{.event = message(1), .receptor = "mail", .attempt = 2}};
  EXPECT_EQ(a.say(request).receptor_completions, all_ok(1));
  EXPECT_EQ(a.say(request).receptor_completions, std::vector{Verdict::duplicate});
}

}  // namespace
}  // namespace baton::stream
