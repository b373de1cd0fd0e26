#include "server/poller.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <thread>

#include "server/listener.h"
#include "server/signals.h"

namespace baton::server {
namespace {

constexpr Duration kLong = hours(1);

std::array<Descriptor, 2> connected() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

TEST(Poller, RunsWhatAnotherThreadPosts) {
  Poller poller;
  bool ran = false;
  std::thread other([&] { poller.post([&] { ran = true; }); });
  while (!ran) poller.wait(kLong);
  other.join();
}

TEST(Poller, WakesOnceForManyWakes) {
  Poller poller;
  for (int count = 0; count < 3; ++count) poller.wake();
  EXPECT_TRUE(poller.wait(kLong));
  EXPECT_FALSE(poller.wait({}));
  poller.wake();
  EXPECT_TRUE(poller.wait(kLong));
}

TEST(Poller, TellsWhenThereIsSomethingToReadAndWhenItEnds) {
  Poller poller;
  auto [here, there] = connected();
  Ready last;
  poller.watch(here.number(), Poller::For::reading_and_writing, [&](Ready ready) { last = ready; });
  poller.wait(kLong);  // it can be written to
  EXPECT_TRUE(last.to_write && !last.to_read);
  ASSERT_EQ(::send(there.number(), "x", 1, 0), 1);
  poller.wait(kLong);
  EXPECT_TRUE(last.to_read && !last.hung_up);
  there = {};
  poller.wait(kLong);
  EXPECT_TRUE(last.hung_up);
  poller.forget(here.number());
}

TEST(Poller, ForgetsWhoWasWatched) {
  Poller poller;
  auto [here, there] = connected();
  poller.watch(here.number(), Poller::For::reading, [&](Ready) { FAIL(); });
  poller.forget(here.number());
  ASSERT_EQ(::send(there.number(), "x", 1, 0), 1);
  EXPECT_FALSE(poller.wait({}));
}

TEST(Signals, CanBeWaitedFor) {
  Poller poller;
  constexpr int kNumbers[] = {SIGUSR1};
  Signals signals(kNumbers);
  int came = 0;
  poller.watch(signals.descriptor(), Poller::For::reading, [&](Ready) { came = signals.next(); });
  ::raise(SIGUSR1);
  while (came == 0) poller.wait(kLong);
  EXPECT_EQ(came, SIGUSR1);
  EXPECT_EQ(signals.next(), 0);
}

std::vector<Descriptor> callers(std::uint16_t port, std::size_t count) {
  std::vector<Descriptor> all;
  sockaddr_in to{.sin_family = AF_INET, .sin_port = htons(port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  while (all.size() < count) {
    all.emplace_back(::socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(::connect(all.back().number(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  return all;
}

// X5: those who are in come to be served, however many want to come in.
TEST(Listener, LetsInSoManyAtOnce) {
  Poller poller;
  std::vector<Descriptor> opened;
  Listener listener(poller, [&](Descriptor socket) { opened.push_back(std::move(socket)); });
  Address address;
  ASSERT_TRUE(listener.open(address, "--listen"));
  const std::vector<Descriptor> clients = callers(address.port, Listener::kAtOnce + 1);
  while (!poller.wait(kLong)) {
  }
  listener.accept_waiting({});
  EXPECT_EQ(opened.size(), clients.size() - 1);
  EXPECT_TRUE(listener.has_more());
  listener.accept_waiting({});
  EXPECT_EQ(opened.size(), clients.size());
  EXPECT_FALSE(listener.has_more());
}

// Out of descriptors, it waits a moment instead of trying all the time, and goes on when there are some.
TEST(Listener, WaitsWhileThereAreNoDescriptors) {
  Poller poller;
  std::vector<Descriptor> opened;
  Listener listener(poller, [&](Descriptor socket) { opened.push_back(std::move(socket)); });
  Address address;
  ASSERT_TRUE(listener.open(address, "--listen"));
  const std::vector<Descriptor> client = callers(address.port, 1);
  while (!poller.wait(kLong)) {
  }
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Instant now{1000};
  listener.accept_waiting(now);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(opened.empty());
  EXPECT_FALSE(listener.has_more());
  listener.accept_waiting(now + milliseconds(99));
  EXPECT_TRUE(opened.empty());
  listener.accept_waiting(now + milliseconds(100));
  EXPECT_EQ(opened.size(), 1u);
}

}  // namespace
}  // namespace baton::server
