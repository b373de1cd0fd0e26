// The outbox on the real server.
#include "publish/task_sink.h"

#include <gtest/gtest.h>

#include <thread>

#include "stream/fresh_uuid.h"
#include "tests/proxy.h"
#include "tests/served.h"

namespace baton::publish {
namespace {

stream::Work to(const std::string& destination) {
  return {.lane = stream::Lane::outbox,
          .message = {stream::fresh_uuid()},
          .target = destination,
          .type = "Greeting",
          .data = R"({"to": "you"})"};
}

// S22: a sink that works, for the outbox.
TEST(ATaskSink, MakesATaskOfAMessageOnce) {
  Served server{BATON_PROGRAM};
  const client::ClientOptions options{.addresses = {server.address()}};
  TaskSink sink(options);
  const stream::Work work = to("mail");
  EXPECT_TRUE(sink.publish(work, {}));
  EXPECT_TRUE(sink.publish(work, {})) << "again, as after a crash";
  client::Client client(options);
  const auto tasks = client.tasks({.queue = "mail"});
  ASSERT_TRUE(tasks);
  ASSERT_EQ(tasks->tasks.size(), 1u);
  EXPECT_EQ(tasks->tasks[0].key, to_text(work.message.value));
  EXPECT_EQ(client.get(tasks->tasks[0].task)->payload, work.data);
}

TEST(ATaskSink, FindsTheNamespaceInTheDestination) {
  Served server{BATON_PROGRAM};
  TaskSink sink({.addresses = {server.address()}});
  EXPECT_TRUE(sink.publish(to("shop/mail"), {}));
  client::Client client({.addresses = {server.address()}, .ns = "shop"});
  EXPECT_EQ(client.tasks({.queue = "mail"})->tasks.size(), 1u);
}

// S22: a processor that drains is not kept by a coordinator that does not answer.
TEST(ATaskSink, ReturnsWhenItIsToldToStop) {
  Served server{BATON_PROGRAM};
  Proxy proxy(server.port());
  TaskSink sink({.addresses = {proxy.address()}, .deadline = hours(1), .silence_max = hours(1)});
  EXPECT_TRUE(sink.publish(to("mail"), {}));
  proxy.set({.holds_replies = true});
  std::stop_source stop;
  std::jthread stopper([&, before = proxy.request_bytes()] {
    while (proxy.request_bytes() == before) std::this_thread::yield();
    stop.request_stop();
  });
  EXPECT_EQ(sink.publish(to("mail"), stop.get_token()).error().code, Errc::outcome_unknown);
  EXPECT_EQ(sink.publish(to("mail"), stop.get_token()).error().code, Errc::closed);
}

TEST(ATaskSink, SaysWhatIsWrong) {
  Served server{BATON_PROGRAM};
  TaskSink sink({.addresses = {server.address()}});
  EXPECT_EQ(sink.publish(to("no such/queue name at all\n"), {}).error().code, Errc::invalid_request);
  stream::Work large = to("mail");
  large.data = '"' + std::string(256 * 1024 - 2, 'x') + '"';
  EXPECT_TRUE(sink.publish(large, {}));
  large.message = {stream::fresh_uuid()};
  large.data += ' ';
  EXPECT_EQ(sink.publish(large, {}).error().code, Errc::too_large);
}

}  // namespace
}  // namespace baton::publish
