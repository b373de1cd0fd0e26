// What a call about streams leaves in the log and in the state. What it answers is told by tests/stream, for
// every implementation.
#include "core/stream/testing.h"

namespace baton::core {
namespace {

using stream::Verdict;

Authority with_instance() {
  Authority authority;
  authority.ask(a_heartbeat(1), kStart);
  return authority;
}

// S1: whatever it says, it is one entry.
TEST(ACall, IsOneEntry) {
  Authority authority;
  ProcessWork call = a_heartbeat(1);
  call.messages.inbox = {a_message(1, 1), a_message(2, 1), a_message(3, 0)};
  call.messages.outbox = {a_message(1, 1)};
  call.claim = stream::ClaimRequest{};
  const Lsn before = authority.state().last;
  const auto answer = authority.ask(call, kStart).as<WorkProcessed>();
  EXPECT_EQ(authority.state().last, before + 1);
  EXPECT_EQ(answer.work.size(), 4u);
  for (const GivenMessage& given : answer.work) EXPECT_EQ(given.epoch, before + 1) << "which is its epoch";
}

// S18
TEST(ACall, ThatChangesNothingWritesNothing) {
  Authority authority = with_instance();
  authority.ask(a_store(1, {a_message(1, 1)}), kStart);
  const auto work = authority.ask(a_claim(1), kStart).as<WorkProcessed>().work;
  authority.ask(a_completion(1, work), kStart);
  const Lsn before = authority.state().last;

  EXPECT_TRUE(authority.ask(a_claim(1), kStart).as<WorkProcessed>().work.empty());
  EXPECT_EQ(authority.ask(a_store(1, {a_message(1, 1)}), kStart).as<WorkProcessed>().messages.inbox,
            Verdicts{Verdict::duplicate});
  EXPECT_EQ(authority.ask(a_completion(1, work), kStart).as<WorkProcessed>().completions.inbox,
            Verdicts{Verdict::unknown});
  EXPECT_TRUE(authority.ask(a_heartbeat(1), kStart).is<WorkProcessed>());
  EXPECT_EQ(authority.state().last, before);
}

// S16: it is heard every time, and recorded when a third of the time is over.
TEST(AHeartbeat, IsRecordedOnceInAWhile) {
  Authority authority = with_instance();
  const Duration third{stream::kStale.ms / 3};
  EXPECT_FALSE(authority.ask(a_heartbeat(1), just_before(kStart + third)).appended);
  EXPECT_TRUE(authority.ask(a_heartbeat(1), kStart + third).appended);
}

// S16, S23: where it is to be found is recorded at once, and kept while it says nothing of it.
TEST(AHeartbeat, SaysWhereTheInstanceIsNow) {
  Authority authority = with_instance();
  ProcessWork moved = a_heartbeat(1);
  moved.heartbeat->host = "there", moved.heartbeat->process = 2;
  EXPECT_TRUE(authority.ask(moved, kStart).appended);
  EXPECT_FALSE(authority.ask(moved, kStart).appended);
  moved.heartbeat->host = "", moved.heartbeat->process = 0;
  EXPECT_FALSE(authority.ask(moved, kStart).appended);
  const streams::Streams& all = authority.state().streams;
  const streams::Instance& known = all.instances[streams::find_instance(all, moved.ns, moved.instance)];
  EXPECT_EQ(known.host, "there");
  EXPECT_EQ(known.process, 2);
}

// S16
TEST(AnInstance, IsEvictedWhenItIsSilentForLongerThanAllowed) {
  Authority authority = with_instance();
  authority.ask(a_heartbeat(2), kStart + stream::kStale);
  EXPECT_EQ(authority.state().streams.instances.used(), 2u);
  authority.ask(a_heartbeat(2), kStart + just_over(stream::kStale));
  EXPECT_EQ(authority.state().streams.instances.used(), 1u);
  EXPECT_EQ(authority.ask(a_heartbeat(1), kStart + just_over(stream::kStale)).refusal, Errc::lease_lost);
}

// S1, S16
TEST(AnInstance, IsNotEvictedByACallThatIsRefused) {
  Authority authority = with_instance();
  const Instant later = kStart + just_over(stream::kStale);
  ProcessWork large = a_heartbeat(2);
  large.messages.inbox = {a_message(1, 1)};
  large.messages.inbox[0].body = Blob(std::string(authority.rules.streams.entry_bytes_max, 'x'));
  EXPECT_EQ(authority.ask(large, later).refusal, Errc::too_large);
  EXPECT_TRUE(authority.ask(a_heartbeat(1), later).reply);
}

// S16: nor do the dead keep the living out.
TEST(AnInstance, ThatIsSilentMakesRoomForAnother) {
  Authority authority = with_instance();
  authority.rules.streams.instances_max = 1;
  EXPECT_EQ(authority.ask(a_heartbeat(2), kStart + stream::kStale).refusal, Errc::exhausted);
  EXPECT_TRUE(authority.ask(a_heartbeat(2), kStart + just_over(stream::kStale)).appended);
}

// S19: one too large is refused as a whole.
TEST(ACall, FitsOneEntryOrIsRefused) {
  Authority authority = with_instance();
  StoreMessage large = a_message(1, 1);
  large.body = Blob(std::string(authority.rules.streams.entry_bytes_max, 'x'));
  EXPECT_EQ(authority.ask(a_store(1, {large}), kStart).refusal, Errc::too_large);
  large.body = Blob(std::string(authority.rules.streams.entry_bytes_max - 2048, 'x'));
  EXPECT_EQ(authority.ask(a_store(1, {large}), kStart).appended, EventType::work_batch_applied);
  EXPECT_LE(authority.log().back().body.size(), authority.rules.streams.entry_bytes_max);
}

TEST(ACoordinator, HoldsNoMoreThanItsLimits) {
  Authority authority = with_instance();
  authority.rules.streams.messages_max = 2;
  authority.rules.streams.instances_max = 1;
  EXPECT_EQ(authority.ask(a_store(1, {a_message(1, 1), a_message(2, 1), a_message(3, 1)}), kStart).refusal,
            Errc::exhausted);
  EXPECT_TRUE(authority.ask(a_store(1, {a_message(1, 1), a_message(2, 1)}), kStart).appended);
  EXPECT_EQ(authority.ask(a_heartbeat(2), kStart).refusal, Errc::exhausted);
  authority.rules.admit_submissions = false;
  EXPECT_EQ(authority.ask(a_store(1, {a_message(9, 1)}), kStart).refusal, Errc::exhausted);
  EXPECT_EQ(authority.ask(a_claim(1), kStart).as<WorkProcessed>().work.size(), 2u) << "what is there goes on";
}

// S3: at the limit of its length, in the namespace with the longest name.
TEST(AService, MayHaveALongName) {
  Authority authority;
  ProcessWork call = a_heartbeat(1);
  call.ns = std::string(128, 'n');
  call.heartbeat->service = std::string(200, 's');
  EXPECT_TRUE(authority.ask(call, kStart).is<WorkProcessed>());
}

// S23: names of services are not used up.
TEST(AService, IsForgottenWithTheLastThatBelongsToIt) {
  Authority authority;
  authority.rules.streams.services_max = 1;
  const auto join = [&](unsigned instance, Instant now) {
    ProcessWork call = a_heartbeat(instance);
    call.heartbeat->service = "service " + std::to_string(instance);
    return authority.ask(call, now);
  };
  const auto leave = [&](unsigned instance) {
    authority.ask(LeaveWork{.ns = "n", .instance = instance_id(instance)}, kStart);
  };
  for (unsigned i = 1; i <= 5; ++i) {
    ASSERT_TRUE(join(i, kStart).is<WorkProcessed>());
    EXPECT_EQ(join(i + 1, kStart).refusal, Errc::exhausted);
    if (i < 5) leave(i);
  }
  authority.ask(a_store(5, {a_message(1, 1)}), kStart);
  authority.ask(a_completion(5, authority.ask(a_claim(5), kStart).as<WorkProcessed>().work), kStart);
  leave(5);
  EXPECT_EQ(join(6, kStart).refusal, Errc::exhausted) << "its inbox has seen a message";
  const Instant later = kStart + just_over(authority.rules.streams.seen_for);
  authority.record(overdue_to_forget(authority.state(), authority.moment(later)).value(), later);
  EXPECT_EQ(authority.state().streams.services.used(), 0u);
  EXPECT_EQ(reloaded(authority.state()).streams.next_stream, 2u) << "numbers are not used twice";
  EXPECT_TRUE(join(6, later).is<WorkProcessed>());
}

// S17: those that are forgotten can never be reported, and hold up nothing.
TEST(APerspective, BeginsWithTheOldestEventThatIsKnown) {
  Authority authority = with_instance();
  const auto event = [](unsigned number) {
    StoreMessage made = a_message(number, 1);
    made.is_event = true;
    return made;
  };
  const Instant later = kStart + just_over(authority.rules.streams.seen_for);
  authority.ask(a_store(1, {event(1), event(2)}), kStart);
  authority.ask(a_store(1, {event(3), event(4)}), later);
  authority.record(overdue_to_forget(authority.state(), authority.moment(later)).value(), later);
  const auto report = [&](const State& state, unsigned last, std::vector<stream::MessageId> processed) {
    ProcessWork call = a_call(1);
    call.perspectives.completed = {{.stream = stream_id(1),
                                    .perspective = "totals",
                                    .last_event = message_id(last),
                                    .processed = std::move(processed)}};
    const Decision decision = decide(state, authority.workers, call, authority.moment(later));
    const auto* append = std::get_if<Append>(&decision);
    return append == nullptr ? 0u : std::get<WorkBatchApplied>(append->event).checkpoints.at(0).version;
  };
  EXPECT_EQ(report(authority.state(), 3, {message_id(3)}), 3u);
  EXPECT_EQ(report(authority.state(), 4, {message_id(4)}), 2u) << "3 is known, and missing";
  EXPECT_EQ(report(reloaded(authority.state()), 3, {message_id(3)}), 3u);
}

// S13: what is past its time is forgotten by an entry of its own, a bounded amount at a time.
TEST(WhatIsRemembered, IsForgottenInTime) {
  Authority authority = with_instance();
  authority.ask(a_store(1, {a_message(1, 1)}), kStart);
  authority.ask(a_completion(1, authority.ask(a_claim(1), kStart).as<WorkProcessed>().work), kStart);
  const auto forget = [&](Instant now) {
    const auto overdue = overdue_to_forget(authority.state(), authority.moment(now));
    if (overdue) authority.record(*overdue, now);
    return overdue.value_or(StreamsForgotten{});
  };
  const StreamRules& rules = authority.rules.streams;
  EXPECT_EQ(forget(kStart + rules.idle_for), StreamsForgotten{});
  EXPECT_EQ(forget(kStart + just_over(rules.idle_for)).idle.size(), 1u);
  EXPECT_EQ(forget(kStart + rules.seen_for), StreamsForgotten{});
  EXPECT_EQ(forget(kStart + just_over(rules.seen_for)).seen, 1u);
  EXPECT_EQ(authority.state().streams.seen_ids.size(), 0u);
}

// S13: up to so many; beyond that the oldest go before their time, and are taken once more.
TEST(WhatIsRemembered, IsForgottenEarlyBeyondTheLimit) {
  Authority authority = with_instance();
  authority.rules.streams.remembered_max = 2;
  const auto forget = [&] {
    const auto overdue = overdue_to_forget(authority.state(), authority.moment(kStart));
    if (overdue) authority.record(*overdue, kStart);
    return overdue.value_or(StreamsForgotten{}).seen;
  };
  const auto store_and_finish = [&](unsigned number) {
    const Verdicts verdicts =
        authority.ask(a_store(1, {a_message(number, 0)}), kStart).as<WorkProcessed>().messages.inbox;
    const auto work = authority.ask(a_claim(1), kStart).as<WorkProcessed>().work;
    if (!work.empty()) authority.ask(a_completion(1, work), kStart);
    return verdicts.at(0);
  };
  store_and_finish(1), store_and_finish(2);
  EXPECT_EQ(forget(), 0u);
  store_and_finish(3);
  EXPECT_EQ(forget(), 1u);
  EXPECT_EQ(forget(), 0u);
  EXPECT_EQ(store_and_finish(2), stream::Verdict::duplicate);
  EXPECT_EQ(store_and_finish(1), stream::Verdict::ok);
}

TEST(DeadLetters, BeyondTheLimitGoOldestFirst) {
  Authority authority = with_instance();
  authority.ask(a_store(1, {a_message(1, 1), a_message(2, 2), a_message(3, 3)}), kStart);
  ProcessWork failing = a_call(1);
  for (const GivenMessage& given : authority.ask(a_claim(1), kStart).as<WorkProcessed>().work)
    failing.failures.inbox.push_back(
        {.held = {given.message}, .error = Blob("no"), .policy = stream::FailurePolicy::park});
  authority.ask(failing, kStart);
  EXPECT_FALSE(surplus_letters(authority.state(), authority.moment(kStart)));
  authority.rules.streams.letters_max = 2;
  const auto surplus = surplus_letters(authority.state(), authority.moment(kStart));
  ASSERT_TRUE(surplus);
  EXPECT_EQ(surplus->letters, std::vector<std::uint64_t>{1});
}

// S11, S15: a stream that is parked goes on when people say so, and not because there are many letters. Those
// stand in the way of no others, however many and old they are.
TEST(DeadLetters, BehindWhichAStreamIsParkedStay) {
  constexpr unsigned kParking = kLettersPerEntryMax + 1, kOthers = 3;
  Authority authority = with_instance();
  const auto fail = [&](unsigned first, unsigned count, stream::FailurePolicy policy) {
    ProcessWork store = a_call(1), failing = a_call(1);
    for (unsigned i = first; i < first + count; ++i) {
      store.messages.inbox.push_back(a_message(i, i));
      failing.failures.inbox.push_back({.held = {message_id(i)}, .error = Blob("no"), .policy = policy});
    }
    authority.ask(store, kStart);
    authority.ask(a_claim(1, {.limits = {.streams = 2 * kParking, .messages = 2 * kParking}}), kStart);
    authority.ask(failing, kStart);
  };
  fail(1, kParking, stream::FailurePolicy::park_stream);
  fail(kParking + 1, kOthers, stream::FailurePolicy::park);
  ASSERT_EQ(authority.state().streams.dead.all.used(), kParking + kOthers);
  authority.rules.streams.letters_max = kParking + 1;
  const auto surplus = surplus_letters(authority.state(), authority.moment(kStart));
  ASSERT_TRUE(surplus);
  EXPECT_EQ(surplus->letters, (std::vector<std::uint64_t>{kParking + 1, kParking + 2}));
  const State after_restart = reloaded(authority.state());
  EXPECT_EQ(surplus_letters(after_restart, authority.moment(kStart)).value().letters, surplus->letters);
  authority.record(*surplus, kStart);
  EXPECT_FALSE(surplus_letters(authority.state(), authority.moment(kStart)));
  authority.rules.streams.letters_max = 0;
  authority.record(surplus_letters(authority.state(), authority.moment(kStart)).value(), kStart);
  EXPECT_FALSE(surplus_letters(authority.state(), authority.moment(kStart)));
  EXPECT_EQ(authority.state().streams.dead.all.used(), kParking);
}

ProcessWork storing_one() {
  ProcessWork store = a_call(1);
  store.messages.outbox = {a_message(1, 1)};
  return store;
}
ProcessWork parking_one() {
  ProcessWork failing = a_call(1);
  failing.failures.outbox = {
      {.held = {message_id(1)}, .error = Blob("no"), .policy = stream::FailurePolicy::park}};
  return failing;
}

// S15: the same message twice in an outbox would be in each other's way.
TEST(ADeadLetter, IsNotReplayedWhileItsMessageIsThereAgain) {
  Authority authority = with_instance();
  const ProcessWork store = storing_one(), failing = parking_one();
  authority.ask(store, kStart);
  authority.ask(a_claim(1), kStart);
  authority.ask(failing, kStart);
  authority.ask(store, kStart);
  EXPECT_EQ(authority.ask(ReplayLetters{.ns = "n", .letters = {1}}, kStart).refusal, Errc::conflict);
  EXPECT_EQ(authority.ask(ReplayLetters{.ns = "n"}, kStart).as<Purged>().count, 0u) << "none that can be";
  authority.ask(a_claim(1), kStart);
  authority.ask(failing, kStart);
  EXPECT_EQ(authority.ask(ReplayLetters{.ns = "n", .letters = {1, 2}}, kStart).refusal, Errc::conflict);
  EXPECT_EQ(authority.ask(ReplayLetters{.ns = "n"}, kStart).as<Purged>().count, 1u) << "the older one";
}

// S15, S20: or who replays all of them, call after call, would never come to an end
TEST(ADeadLetter, IsLeftAloneIfItCameAfterTheLastThatIsMeant) {
  Authority authority = with_instance();
  const ProcessWork store = storing_one(), failing = parking_one();
  const auto dies = [&] {
    authority.ask(a_claim(1), kStart);
    authority.ask(failing, kStart);
  };
  authority.ask(store, kStart);
  dies();
  const Purged first = authority.ask(ReplayLetters{.ns = "n"}, kStart).as<Purged>();
  EXPECT_EQ(first.count, 1u);
  ASSERT_EQ(first.last_letter, 1u);
  dies();
  const ReplayLetters rest{.ns = "n", .last = 1};
  EXPECT_EQ(authority.ask(rest, kStart).as<Purged>().count, 0u);
  const PurgeLetters purge{.ns = "n", .letters = {}, .older_than = {}, .last = 1};
  EXPECT_EQ(authority.ask(purge, kStart).as<Purged>().count, 0u);
  EXPECT_EQ(authority.ask(PurgeLetters{.ns = "n", .letters = {2}, .older_than = {}, .last = 1}, kStart)
                .as<Purged>()
                .count,
            0u);
  EXPECT_EQ(authority.ask(PurgeLetters{.ns = "n", .letters = {}, .older_than = {}, .last = 2}, kStart)
                .as<Purged>()
                .count,
            1u);
}

// S15, S19: each then finds its place beside the one before, however many they are.
TEST(DeadLetters, ComeBackStreamByStream) {
  Authority authority = with_instance();
  const auto die = [&](const std::vector<StoreMessage>& messages) {
    authority.ask(a_store(1, messages), kStart);
    ProcessWork failing = a_call(1);
    for (const GivenMessage& one : authority.ask(a_claim(1), kStart).as<WorkProcessed>().work)
      failing.failures.inbox.push_back(
          {.held = {one.message}, .error = Blob("no"), .policy = stream::FailurePolicy::park});
    authority.ask(failing, kStart);
  };
  die({a_message(1, 1)}), die({a_message(2, 2)}), die({a_message(3, 0)});
  die({a_message(4, 1)}), die({a_message(5, 2)}), die({a_message(6, 0)});
  EXPECT_EQ(authority.ask(ReplayLetters{.ns = "n"}, kStart).as<Purged>().count, 6u);
  const auto& messages = authority.state().streams.message_numbers;
  std::vector<stream::MessageId> back;
  for (Slot slot = messages.first_from(1); slot != 0;) {
    const streams::Message& message = authority.state().streams.messages[slot];
    back.push_back(message.id);
    slot = messages.first_from(message.number + 1);
  }
  EXPECT_EQ(back, (std::vector{message_id(3), message_id(6), message_id(1), message_id(4), message_id(2),
                               message_id(5)}));
  EXPECT_EQ(replayed(authority.log()).digest, authority.state().digest);
}

TEST(AMessageThatIsLostAgainAndAgain, IsHandedOutForEverIfTheRulesSaySo) {
  Authority authority = with_instance();
  authority.rules.streams.losses_max = 0;
  authority.ask(a_store(1, {a_message(1, 1)}), kStart);
  Instant now = kStart;
  for (int loss = 0; loss < 20; ++loss, now = now + minutes(2))
    EXPECT_EQ(authority.ask(a_claim(1, {.lease = minutes(1)}), now).as<WorkProcessed>().work.size(), 1u);
}

// S15: one that kills whoever handles it is found out, and does not hold its stream for ever.
TEST(AMessageThatIsLostAgainAndAgain, IsHandedOutAloneAndThenNoMore) {
  Authority authority = with_instance();
  authority.ask(a_store(1, {a_message(1, 1), a_message(2, 1), a_message(3, 0)}), kStart);
  Instant now = kStart;
  const auto next = [&] {
    now = now + minutes(2);
    std::vector<stream::MessageId> given;
    for (const auto& one : authority.ask(a_claim(1, {.lease = minutes(1)}), now).as<WorkProcessed>().work)
      if (one.stream) given.push_back(one.message);
    return given;
  };
  for (int loss = 1; loss <= 3; ++loss) EXPECT_EQ(next().size(), 2u) << loss;
  for (int loss = 4; loss <= 10; ++loss) EXPECT_EQ(next(), std::vector{message_id(1)}) << loss;
  EXPECT_EQ(next(), std::vector{message_id(2)});
  const auto& dead = authority.state().streams.dead;
  ASSERT_EQ(dead.all.used(), 2u) << "the one without a stream too";
  EXPECT_EQ(dead.all[dead.by_age.head].message.reason, 5);
  EXPECT_EQ(full_digest(authority.state()), authority.state().digest);
  EXPECT_EQ(replayed(authority.log()).digest, authority.state().digest);
}

// S15, S19: however much of it there is, burying it does not outgrow an entry; the next claim goes on.
TEST(AMessageThatIsLostAgainAndAgain, FitsAnEntryTogetherWithAllOthers) {
  constexpr unsigned kCount = 400;
  Authority authority = with_instance();
  std::vector<StoreMessage> messages;
  for (unsigned i = 1; i <= kCount; ++i) messages.push_back(a_message(i, i % 2 == 0 ? i : 0));
  authority.ask(a_store(1, std::move(messages)), kStart);
  const stream::ClaimRequest all{.lease = minutes(1), .limits = {.streams = kCount, .messages = kCount}};
  Instant now = kStart;
  const auto claim = [&] {
    now = now + minutes(2);
    return authority.ask(a_claim(1, all), now).as<WorkProcessed>().work.size();
  };
  for (std::uint32_t loss = 0; loss < authority.rules.streams.losses_max; ++loss) ASSERT_EQ(claim(), kCount);
  authority.rules.streams.entry_bytes_max = 16 * 1024;
  const auto& dead = authority.state().streams.dead.all;
  for (std::uint32_t before = 0; before < kCount; before = dead.used()) {
    EXPECT_EQ(claim(), 0u);
    EXPECT_LE(authority.log().back().body.size(), authority.rules.streams.entry_bytes_max);
    ASSERT_GT(dead.used(), before);
  }
  EXPECT_EQ(replayed(authority.log()).digest, authority.state().digest);
}

// S14
TEST(DebugMode, KeepsWhatIsDoneForADay) {
  Authority authority = with_instance();
  authority.ask(a_store(1, {a_message(1, 1)}), kStart);
  ProcessWork completion = a_completion(1, authority.ask(a_claim(1), kStart).as<WorkProcessed>().work);
  completion.keep_done = true;
  authority.ask(completion, kStart);
  EXPECT_EQ(authority.state().streams.kept.all.used(), 1u);
  const Duration day = authority.rules.streams.kept_for;
  const auto overdue = overdue_to_forget(authority.state(), authority.moment(kStart + just_over(day)));
  ASSERT_TRUE(overdue);
  EXPECT_EQ(overdue->kept, 1u);
}

}  // namespace
}  // namespace baton::core
