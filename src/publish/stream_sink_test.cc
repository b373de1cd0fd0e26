// The outbox of one service into the inbox of another, on the real server.
#include "publish/stream_sink.h"

#include <gtest/gtest.h>

#include "client/call.h"
#include "stream/fresh_uuid.h"
#include "tests/served.h"

namespace baton::publish {
namespace {

stream::Work to(const std::string& destination, stream::StreamId stream, std::int64_t sequence = 1) {
  return {.lane = stream::Lane::outbox,
          .message = {stream::fresh_uuid()},
          .stream = stream,
          .sequence = sequence,
          .target = destination,
          .type = "Greeting",
          .data = R"({"to": "you"})",
          .metadata = R"({"hop": 1})"};
}

std::vector<stream::Work> claimed(const std::string& address, const std::string& ns) {
  client::WorkCoordinator coordinator({.addresses = {address}, .ns = ns});
  auto batch =
      coordinator.process_work_batch({.instance = {.id = {stream::fresh_uuid()}, .service = "mail"}});
  EXPECT_TRUE(batch);
  if (!batch) return {};
  EXPECT_EQ(batch->standing.active, 1) << "whoever published is not one of them";
  return std::move(batch->work);
}

// S9, S22: a hop that keeps streams, order and ids.
TEST(AStreamSink, StoresIntoAnotherInboxInOrderAndOnce) {
  Served server{BATON_PROGRAM};
  StreamSink sink({.addresses = {server.address()}, .ns = "shop"});
  const stream::StreamId stream{stream::fresh_uuid()};
  const std::vector<stream::Work> sent{to("mail", stream), to("mail", stream, 2), to("mail", stream, 3)};
  for (const stream::Work& work : sent) EXPECT_TRUE(sink.publish(work, {}));
  EXPECT_TRUE(sink.publish(sent[1], {})) << "again, as after a crash";
  const auto came = claimed(server.address(), "shop");
  ASSERT_EQ(came.size(), sent.size());
  for (std::size_t i = 0; i < came.size(); ++i) {
    EXPECT_EQ(came[i].message, sent[i].message);
    EXPECT_EQ(came[i].stream, stream);
    EXPECT_EQ(came[i].sequence, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(came[i].data, sent[i].data);
    EXPECT_EQ(came[i].metadata, sent[i].metadata);
  }
}

// The others of the service take whoever is silent for gone, and a sink may have nothing to say for long.
TEST(AStreamSink, StartsAgainWhereItWasEvicted) {  // S16
  Served server{BATON_PROGRAM};
  StreamSink sink({.addresses = {server.address()}, .ns = "shop"});
  EXPECT_TRUE(sink.publish(to("mail", {stream::fresh_uuid()}), {}));
  client::WorkCoordinator coordinator({.addresses = {server.address()}, .ns = "shop"});
  const stream::Instance other{.id = {stream::fresh_uuid()}, .service = "mail"};
  const std::int64_t began_ms = client::now_ms();
  do {
    const auto seen = coordinator.process_work_batch({.instance = other, .stale = seconds(1)});
    ASSERT_TRUE(seen) << seen.error().message;
  } while (client::now_ms() <= began_ms + 1100);  // a call after the second is over
  EXPECT_TRUE(sink.publish(to("mail", {stream::fresh_uuid()}), {}));
}

TEST(AStreamSink, FindsTheNamespaceInTheDestination) {
  Served server{BATON_PROGRAM};
  StreamSink sink({.addresses = {server.address()}});
  EXPECT_TRUE(sink.publish(to("shop/mail", {stream::fresh_uuid()}), {}));
  EXPECT_EQ(claimed(server.address(), "shop").size(), 1u);
  EXPECT_EQ(sink.publish(to("", {stream::fresh_uuid()}), {}).error().code, Errc::invalid_request);
}

}  // namespace
}  // namespace baton::publish
