// A long random conversation about streams, and at every step: what replay makes of the log and what a
// snapshot keeps is the same state, which goes on to decide the same.
#include <map>
#include <random>

#include "core/stream/testing.h"

namespace baton::core {
namespace {

using streams::LaneOfService;
using streams::Streams;

class Conversation {
 public:
  explicit Conversation(unsigned seed) : dice_(seed) {}

  Request next() {
    if (one_in(60)) return LeaveWork{.ns = "n", .instance = instance_id(someone())};
    if (one_in(40)) return ReplayLetters{.ns = "n"};
    if (one_in(80)) return PurgeLetters{.ns = "n", .older_than = minutes(10)};
    const unsigned instance = someone();
    ProcessWork call = one_in(4) ? a_call(instance) : a_heartbeat(instance, minutes(15));
    if (call.heartbeat) call.heartbeat->service = "service " + std::to_string(instance % 2);
    for (const stream::Lane lane : kLanes) {
      for (int left = below(4); left > 0; --left) call.messages[lane].push_back(message());
      for (int left = below(6); left > 0 && !given_.empty(); --left) report(call);
      if (one_in(5) && !given_.empty()) call.renewals[lane].push_back(held(lane));
    }
    if (one_in(3))
      call.receptors.completed = {{message_id(below(50)), "mail", stream::ReceptorStatus::completed}};
    if (one_in(3)) {
      call.perspectives.completed = {{stream_id(1 + below(4)), "totals", message_id(below(50))}};
      if (one_in(2)) call.perspectives.completed[0].processed = {message_id(below(50))};
    }
    call.keep_done = one_in(4);
    if (!one_in(3))
      call.claim = stream::ClaimRequest{.lease = minutes(1), .limits = {.streams = 3, .messages = 8}};
    return call;
  }
  void hear(const Answer& answer) {
    if (!answer.is<WorkProcessed>()) return;
    for (const GivenMessage& work : answer.as<WorkProcessed>().work) given_.push_back(work);
    if (given_.size() > 40) given_.erase(given_.begin(), given_.begin() + 20);
  }
  Duration pause() {
    if (one_in(100)) return hours(2 + below(24));  // nearly all is forgotten
    return one_in(10) ? minutes(below(20)) : seconds(below(20));
  }
  bool one_in(int many) { return below(many) == 0; }

 private:
  unsigned below(int limit) { return static_cast<unsigned>(dice_() % static_cast<unsigned>(limit)); }
  unsigned someone() { return 1 + below(5); }
  StoreMessage message() {
    StoreMessage made = a_message(below(50), below(5));
    made.is_event = one_in(2);
    if (one_in(6)) made.policy = stream::FailurePolicy::park_stream;
    return made;
  }
  stream::Held held(stream::Lane& lane) {
    const GivenMessage& one = given_[below(static_cast<int>(given_.size()))];
    lane = one.lane;
    if (one_in(4)) return {one.message};
    return {one.message, stream::Epoch{static_cast<std::int64_t>(one.epoch)}};
  }
  stream::Held held(const stream::Lane&) {
    stream::Lane any = stream::Lane::inbox;
    return held(any);
  }
  void report(ProcessWork& call) {
    stream::Lane lane = stream::Lane::inbox;
    const stream::Held item = held(lane);
    if (one_in(3)) {
      call.failures[lane].push_back({.held = item, .error = Blob("it broke")});
      if (one_in(3)) call.failures[lane].back().policy = stream::FailurePolicy::park;
    } else {
      call.completions[lane].push_back(
          {.held = item, .status = static_cast<stream::MessageStatus>(below(8))});
    }
  }

  std::minstd_rand dice_;
  std::vector<GivenMessage> given_;
};

// So that two answers can be compared.
Bytes in_bytes(const Decision& decision) {
  Bytes bytes;
  if (const auto* append = std::get_if<Append>(&decision)) encode(append->event, bytes);
  return bytes;
}

// What is kept up with every change is what one would find by looking at everything.
void expect_counted(const State& state) {
  const Streams& all = state.streams;
  std::map<std::pair<Slot, stream::Lane>, LaneOfService> found;
  std::map<Slot, std::uint64_t> given;
  for (Slot slot = all.stream_numbers.first_from(1); slot != 0;
       slot = all.stream_numbers.first_from(all.streams[slot].number + 1)) {
    const streams::Stream& of = all.streams[slot];
    LaneOfService& lane = found[{of.service, of.lane}];
    if (of.owner != 0) lane.held += of.outstanding, given[of.owner] += of.outstanding;
    if (of.is_loose()) continue;
    lane.streams += of.pending > 0;
    lane.held_streams += of.owner != 0;
    lane.parked_streams += of.parking > 0;
  }
  for (const auto& [number, slot] : all.dead_numbers)
    ++found[{all.dead.all[slot].service, all.dead.all[slot].lane}].letters;
  for (Slot slot = 1; slot < all.services.end(); ++slot) {
    for (const stream::Lane lane : kLanes) {
      const LaneOfService &kept = all.services[slot].at(lane), &counted = found[{slot, lane}];
      EXPECT_EQ(kept.held, counted.held);
      EXPECT_EQ(kept.streams, counted.streams);
      EXPECT_EQ(kept.held_streams, counted.held_streams);
      EXPECT_EQ(kept.parked_streams, counted.parked_streams);
      EXPECT_EQ(kept.letters, counted.letters);
    }
  }
  for (const auto& [number, slot] : all.instance_numbers)
    EXPECT_EQ(all.instances[slot].messages, given[slot]);
}

// A service is known as long as something belongs to it; one of a namespace, if anything does.
void expect_uses(const State& state) {
  const Streams& all = state.streams;
  std::map<Slot, std::uint64_t> of_services, of_spaces;
  const auto each = [](const auto& memory, auto note) {
    for (Slot slot = memory.by_age.head; slot != 0; slot = memory.all[slot].next) note(memory.all[slot]);
  };
  const auto note_service = [&](const auto& fact) { ++of_services[fact.service]; };
  const auto note_space = [&](const auto& fact) { ++of_spaces[fact.space]; };
  for (const auto& [number, slot] : all.instance_numbers) note_service(all.instances[slot]);
  for (Slot slot = all.stream_numbers.first_from(1); slot != 0;
       slot = all.stream_numbers.first_from(all.streams[slot].number + 1))
    note_service(all.streams[slot]);
  each(all.dead, note_service), each(all.kept, note_service), each(all.seen, note_service);
  each(all.tombstones, note_space), each(all.receptors, note_space);
  for (Slot slot = 1; slot < all.histories.end(); ++slot) {
    if (all.histories[slot].known > 0) note_space(all.histories[slot]);
  }
  std::size_t known = 0;
  std::vector<Slot> spare;
  for (Slot slot = 1; slot < all.services.end(); ++slot) {
    const streams::Service& service = all.services[slot];
    EXPECT_EQ(service.uses, of_services[slot]);
    if (!service.is_known()) continue;
    ++known;
    if (service.uses == 0) spare.push_back(slot);
    EXPECT_EQ(all.spaces[service.space].uses, of_spaces[service.space]);
  }
  EXPECT_EQ(known, all.services.used());
  EXPECT_EQ(all.spaces.used(), known == 0 ? 0u : 1u);
  EXPECT_LE(spare.size(), of_spaces.empty() || known > 1 ? 0u : 1u);
  for (const Slot slot : spare) EXPECT_EQ(all.spaces[all.services[slot].space].unused_service, slot);
}

class RandomConversation : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Of, RandomConversation, testing::Range(1u, 33u));

TEST_P(RandomConversation, GivesTheSameStateWhenItIsReplayedAndWhenItIsReadFromASnapshot) {
  Conversation conversation(GetParam());
  Authority authority;
  authority.rules.streams.failures_max = 3;
  authority.rules.streams.seen_for = hours(1);
  authority.rules.streams.idle_for = hours(1);
  authority.rules.streams.kept_for = hours(1);
  authority.rules.streams.tombstone_for = hours(1);
  Instant now = kStart;
  for (int step = 0; step < 400; ++step) {
    now = now + conversation.pause();
    const Request request = conversation.next();
    if (step % 10 == 0) {
      const State copy = reloaded(authority.state());
      ASSERT_EQ(copy.digest, authority.state().digest);
      ASSERT_EQ(full_digest(copy), copy.digest);
      expect_counted(authority.state());
      expect_counted(copy);
      expect_uses(authority.state());
      expect_uses(copy);
      // Who is heard of is not in it, so only what does not depend on that is compared.
      const bool evicts = due_before(copy, authority.workers, request, authority.moment(now)).has_value();
      if (!evicts) {
        ASSERT_EQ(in_bytes(decide(copy, authority.workers, request, authority.moment(now))),
                  in_bytes(decide(authority.state(), authority.workers, request, authority.moment(now))));
      }
    }
    conversation.hear(authority.ask(request, now));
    if (const auto overdue = overdue_to_forget(authority.state(), authority.moment(now)))
      authority.record(*overdue, now);
    ASSERT_EQ(full_digest(authority.state()), authority.state().digest) << step;
  }
  const State again = replayed(authority.log());
  EXPECT_EQ(again.digest, authority.state().digest);
  EXPECT_GT(authority.state().streams.next_letter, 3u) << "too little has happened";
}

}  // namespace
}  // namespace baton::core
