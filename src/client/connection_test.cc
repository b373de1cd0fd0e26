// How the client finds a coordinator, is let in, and keeps its lines through what networks do.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/network.h"

namespace baton::client {
namespace {

// A port that nobody listens on, and a server on the second address.
TEST(Client, TriesItsAddressesInTurn) {
  Served server(BATON_PROGRAM);
  Proxy dead(server.port());
  dead.set({.refuses = true});
  Proxy alive(server.port());
  ClientOptions options = to(dead.address());
  options.addresses.push_back(alive.address());
  options.addresses.emplace_back("127.0.0.1:1");
  Client client(options);
  EXPECT_TRUE(client.submit({.queue = "q", .payload = "x"}));
  EXPECT_TRUE(client.lease({.worker = "w", .queues = {"q"}, .wait = milliseconds(1)}));
  // They change their parts.
  dead.set({});
  alive.set({.refuses = true});
  alive.reset();
  EXPECT_TRUE(client.queues());
  EXPECT_TRUE(client.submit({.queue = "q", .payload = "x"}));
}

TEST(Client, SaysThatNobodyCanBeReached) {
  Client client(to("127.0.0.1:1"));
  const auto submitted = client.submit({.queue = "q", .payload = "x"}, seconds(1));
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, Errc::unavailable);
  EXPECT_NE(submitted.error().message.find("127.0.0.1:1"), std::string::npos) << submitted.error().message;
  EXPECT_EQ(client.wait("a-1", milliseconds(1), milliseconds(50)).error().code, Errc::unavailable);
}

TEST(Client, WaitsForAServerThatIsNotThereYet) {
  Network network;
  network.proxy.set({.refuses = true});
  Tally tally;
  network.client.submit({.queue = "q", .payload = "x"}, tally.expects<Submitted>());
  ASSERT_TRUE(eventually([&] { return network.proxy.connections() >= 3; }));
  network.proxy.set({});
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"", 1}}));
}

// Half open: nothing comes, and no reset either.
TEST(Client, LeavesAConnectionThatHasFallenSilent) {
  Network network;
  ClientOptions options = to(network.proxy.address());
  options.silence_max = milliseconds(50);
  options.connect_timeout = milliseconds(50);
  Client client(options);
  ASSERT_TRUE(client.queues());
  network.proxy.set({.holds_requests = true, .holds_replies = true});
  Tally tally;
  client.submit({.queue = "q", .payload = "x"}, tally.expects<Submitted>());  // sent before it is left
  client.queues({}, tally.expects<QueuePage>());
  client.wait("key:none", milliseconds(1), tally.expects<Task>());
  ASSERT_TRUE(eventually([&] { return network.proxy.connections() >= 4; }));  // it tries others
  network.proxy.set({});
  network.proxy.reset();
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"", 1}, {"OUTCOME_UNKNOWN", 1}, {"NOT_FOUND", 1}}));
}

TEST(Client, GoesOnAfterTheServerStoodStill) {
  Network network;
  ASSERT_TRUE(network.client.queues());
  network.server.pause();
  Tally tally;
  for (int i = 0; i < 100; ++i)
    network.client.submit({.queue = "q", .payload = "x"}, tally.expects<Submitted>());
  network.server.go_on();
  EXPECT_EQ(tally.wait(), (std::map<std::string, int>{{"", 100}}));
}

TEST(Client, ReadsRepliesByteByByteAndLate) {
  Network network;
  network.proxy.set({.delay_ms = 2, .piece_bytes = 1});
  const auto task = network.client.submit({.queue = "q", .payload = std::string(500, 'x'), .key = "k"});
  ASSERT_TRUE(task) << task.error().message;
  EXPECT_EQ(network.client.get(task->task)->payload, std::string(500, 'x'));
}

// Wherever a request or a reply is cut, a call that may be repeated comes to its end, once.
TEST(Client, SurvivesACutAtEveryByte) {
  Network network;
  const auto get = [&] { return network.client.get("key:k"); };
  ASSERT_TRUE(network.client.submit({.queue = "q", .payload = "0123456789", .key = "k"}));
  ASSERT_TRUE(get());
  const std::uint64_t requests = network.proxy.request_bytes();
  const std::uint64_t replies = network.proxy.reply_bytes();
  ASSERT_TRUE(get());
  const auto request = static_cast<std::int64_t>(network.proxy.request_bytes() - requests);
  const auto reply = static_cast<std::int64_t>(network.proxy.reply_bytes() - replies);
  ASSERT_GT(request, 10);
  ASSERT_GT(reply, 100);
  for (std::int64_t at = 0; at < request + reply; ++at) {
    network.proxy.set(at < request ? ProxyFaults{.cut_requests_after = at}
                                   : ProxyFaults{.cut_replies_after = at - request});
    const auto task = get();
    ASSERT_TRUE(task) << at << ": " << task.error().message;
    EXPECT_EQ(task->payload, "0123456789");
  }
  EXPECT_GE(network.proxy.cuts(), static_cast<std::uint64_t>(request + reply - 1));
}

TEST(Client, SaysWhoItIsBeforeAnythingElse) {
  std::mutex mutex;
  std::vector<Words> heard;
  ScriptedServer server([&](const Words& words) {
    const std::lock_guard lock(mutex);
    heard.push_back(words);
    return greeting_or(words, "%1\r\n+queues\r\n*0\r\n");
  });
  ClientOptions options = to(server.address());
  options.user = "alice";
  options.token = "secret";
  options.ns = "mail";
  Client client(options);
  EXPECT_TRUE(client.queues());
  const std::lock_guard lock(mutex);
  EXPECT_EQ(heard,
            (std::vector<Words>{
                {"AUTH", "alice", "secret"}, {"HELLO", "3"}, {"USE", "mail"}, {"QUEUES", "COUNT", "1000"}}));
}

// The server's own idea of who may come in.
TEST(Client, IsLetInWithItsToken) {
  const auto made =
      crash::run({.command = {BATON_PROGRAM, "token", "alice", "--allow", "mail=submit,query"}});
  ASSERT_EQ(made.lines.size(), 1u) << made.errors;
  const std::size_t at = made.errors.find("baton_");
  ASSERT_NE(at, std::string::npos);
  const TemporaryDirectory place;
  std::ofstream(place.path() + "/tokens") << made.lines[0] << "\n";
  const Served server(BATON_PROGRAM, {"--tokens", place.path() + "/tokens"});

  ClientOptions options = to(server.address());
  options.ns = "mail";
  Client stranger(options);
  EXPECT_EQ(stranger.queues().error().code, Errc::permission_denied);
  options.user = "alice";
  options.token = "baton_wrong";
  Client wrong(options);
  EXPECT_EQ(wrong.queues().error().code, Errc::permission_denied);
  options.token = made.errors.substr(at, made.errors.find_first_of(" \r\n", at) - at);
  Client alice(options);
  EXPECT_TRUE(alice.submit({.queue = "q", .payload = "x"}));
  EXPECT_EQ(alice.lease({.worker = "w", .queues = {"q"}}).error().code, Errc::permission_denied);
}

// A wrong token stays wrong: nobody waits for his deadline to learn it.
TEST(Client, FailsAtOnceWhenItIsNotLetIn) {
  ScriptedServer server([&](const Words& words) -> std::string {
    return words[0] == "AUTH" ? "-WRONGPASS no such token\r\n" : "-NOAUTH who are you?\r\n";
  });
  ClientOptions options = to(server.address());
  options.token = "wrong";
  options.deadline = hours(1);
  Client client(options);
  EXPECT_EQ(client.queues().error(),
            (Error{Errc::permission_denied, server.address() + ": WRONGPASS no such token"}));
  EXPECT_EQ(client.wait("a-1", seconds(1)).error().code, Errc::permission_denied);
}

TEST(Client, SaysAtOnceThatItHasReachedNoCoordinator) {  // X7
  const ScriptedServer redis([](const std::vector<std::string>& words) -> std::string {
    return words[0] == "HELLO" ? "%0\r\n" : "-ERR unknown command '" + words[0] + "'\r\n";
  });
  Client client({.addresses = {redis.address()}, .ns = "jobs", .deadline = hours(1)});
  const auto submitted = client.submit({.queue = "q", .payload = "x"});
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().code, Errc::unsupported_version);
  EXPECT_EQ(submitted.error().message,
            redis.address() +
                ": whoever listens there is no baton coordinator; look at the address (it says: "
                "ERR unknown command 'USE')");
  const ScriptedServer open([](const Words& words) -> std::string {
    return words[0] == "AUTH" ? "-ERR AUTH <password> called without any password configured\r\n"
                              : "-ERR unknown command\r\n";
  });
  ClientOptions options = to(open.address());
  options.token = "a token";
  options.deadline = hours(1);
  Client known(options);
  EXPECT_EQ(known.queues().error().code, Errc::unsupported_version);
}

// One that is full today may have room tomorrow.
TEST(Client, TriesAgainWhenItIsTurnedAwayForNow) {
  std::atomic<int> turned_away = 0;
  ScriptedServer server([&](const Words& words) -> std::string {
    if (words[0] == "HELLO" && ++turned_away < 4) return "-EXHAUSTED too many connections\r\n";
    return greeting_or(words, "%1\r\n+queues\r\n*0\r\n");
  });
  Client client(to(server.address()));
  EXPECT_TRUE(client.queues());
  EXPECT_EQ(turned_away, 4);
}

TEST(Client, SaysItAgainToTheNextCoordinatorWhenOneIsStopping) {
  std::atomic<int> asked = 0;
  ScriptedServer server([&](const Words& words) -> std::string {
    if (words[0] == "QUEUES" && ++asked < 3) return "-CLOSED the coordinator is stopping\r\n";
    return greeting_or(words, "%1\r\n+queues\r\n*0\r\n");
  });
  Client client(to(server.address()));
  EXPECT_TRUE(client.queues());
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace baton::client
