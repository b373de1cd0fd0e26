// Requests that make no sense, and those that just do.
#include "tests/stream/people.h"

namespace baton::stream {
namespace {

class NonsenseIn : public Streams {};
INSTANTIATE_TEST_SUITE_P(On, NonsenseIn,
                         testing::Values(embedded_backend(), served_backend(), postgres_backend()), name_of);

// S1, S16: nothing of a refused call happens, and the next one works.
TEST_P(NonsenseIn, ARequestIsRefusedAsAWhole) {
  Person a = person(1), bystander = person(2, "another");
  let_time_pass(hours(1));
  const auto refused = [&](auto change) {
    WorkBatchRequest request = a.request();
    request.new_inbox_messages = {in_stream(1, 1)};
    change(request);
    const auto answer = a.coordinator->process_work_batch(request);
    return answer ? std::string("accepted") : std::string(word(answer.error().code));
  };
  using Request = WorkBatchRequest&;
  EXPECT_EQ(refused([](Request r) { r.flags = WorkFlags{256}; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.flags = WorkFlags::orphaned; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.lease = seconds(-1); }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.lease = milliseconds(1500); }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.stale = seconds(0); }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.partitions = 0; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.partitions_max = 0; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.limits.messages = 0; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.instance.id = {}; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.instance.service = ""; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.instance.service = "another"; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.new_outbox_messages = {NewMessage{}}; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) {
              r.new_outbox_messages = {in_stream(2, 1)};
              r.new_outbox_messages[0].target.clear();
            }),
            "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.new_inbox_messages[0].stream = StreamId{}; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.new_inbox_messages[0].metadata = "{broken"; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.new_inbox_messages[0].data = "not json"; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) { r.new_inbox_messages[0].type = "a\xff"; }), "INVALID_REQUEST");
  EXPECT_EQ(refused([](Request r) {
              r.new_inbox_messages[0].data = '"' + std::string(kMessageBytesMax, 'x') + '"';
            }),
            "TOO_LARGE");
  EXPECT_EQ(refused([](Request r) { r.inbox_renewals.assign(kItemsMax + 1, {message(1)}); }), "TOO_LARGE");
  EXPECT_EQ(refused([](Request r) {
              r.inbox_completions = {{.held = {message(1)}, .status = MessageStatus::failed}};
            }),
            "INVALID_REQUEST");
  // What is no text nobody could read again.
  for (const bool is_name : {true, false}) {
    const std::string name = is_name ? "a\xff" : "a", error = is_name ? "" : "\xff";
    EXPECT_EQ(refused([&](Request r) {
                r.receptor_failures = {{message(1), name, ReceptorStatus::failed, error}};
              }),
              "INVALID_REQUEST");
    EXPECT_EQ(refused([&](Request r) {
                r.perspective_failures = {
                    {.stream = stream(1), .perspective = name, .last_event = message(1), .error = error}};
              }),
              "INVALID_REQUEST");
  }
  // What has no such value must not come to the log, where nobody could read it again.
  for (const int beyond : {-1, 3, 9, 255}) {
    const auto policy = static_cast<FailurePolicy>(beyond);
    EXPECT_EQ(refused([&](Request r) { r.new_inbox_messages[0].policy = policy; }), "INVALID_REQUEST");
    EXPECT_EQ(refused([&](Request r) { r.inbox_failures = {{.held = {message(1)}, .policy = policy}}; }),
              "INVALID_REQUEST");
    EXPECT_EQ(refused([&](Request r) {
                r.receptor_completions = {{message(1), "receptor", static_cast<ReceptorStatus>(beyond)}};
              }),
              "INVALID_REQUEST");
    EXPECT_EQ(refused([&](Request r) {
                r.perspective_completions = {{.stream = StreamId{message(1).value},
                                              .perspective = "perspective",
                                              .last_event = message(1),
                                              .status = static_cast<PerspectiveStatus>(beyond)}};
              }),
              "INVALID_REQUEST");
  }
  EXPECT_TRUE(a.claim().empty());
  EXPECT_EQ(refused([](Request) {}), "accepted");
  bystander.arrive();  // it has long been silent, and yet nobody's call was the one to evict it
}

TEST_P(NonsenseIn, ALimitIsNotMetBeforeTheLimit) {
  Person a = person(1);
  NewMessage large = in_stream(1, 1);
  large.data = '"' + std::string(kMessageBytesMax - 2, 'x') + '"';
  EXPECT_EQ(a.store(Lane::inbox, {large}), all_ok(1));
  EXPECT_EQ(a.claim().at(0).data, large.data);
}

// S9: it has its place in the event store, and goes nowhere else.
TEST_P(NonsenseIn, AnOutboxNoDestinationIsOnlyForEventsOfAStream) {
  Person a = person(1);
  NewMessage event = in_stream(1, 1), free = loose(2);
  event.target.clear(), free.target.clear();
  event.is_event = free.is_event = true;
  EXPECT_EQ(a.store(Lane::outbox, {event}), all_ok(1));
  EXPECT_EQ(a.coordinator->store(a.me.id, Lane::outbox, {free}).error().code, Errc::invalid_request);
  EXPECT_EQ(a.store(Lane::inbox, {free}), all_ok(1)) << "an inbox knows handlers by type";
}

// S25
TEST_P(NonsenseIn, ACallThatIsStoppedBeforehandDoesNotHappen) {
  Person a = person(1);
  std::stop_source stop;
  stop.request_stop();
  const auto answer = a.coordinator->store(a.me.id, Lane::inbox, {loose(1)}, kPartitions, stop.get_token());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::closed);
  EXPECT_TRUE(a.claim().empty());
}

}  // namespace
}  // namespace baton::stream
