// The server on real sockets, with peers that behave badly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/peer.h"

namespace baton::server {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

ServerOptions impatient() {
  ServerOptions options;
  options.limits.stuck_max = milliseconds(50);
  return options;
}

TEST(HalfClosed, StillHearsTheRepliesToWhatItAsked) {
  const Running server;
  Peer peer(server.port());
  peer.send("SUBMIT q x\r\nLEASE w q\r\n");
  peer.say_no_more();
  EXPECT_THAT(peer.hear_all(), HasSubstr("payload\r\n$1\r\nx\r\n"));

  Peer browser(server.http_port());
  browser.send(post("submit", R"({"queue":"q","payload":"x"})"));
  browser.say_no_more();
  EXPECT_THAT(browser.hear_all(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

// Whoever hangs up while it waits gets no task, and the next one does not wait for a lease to expire.
TEST(HalfClosed, GetsNoTaskItWaitedFor) {
  const Running server;
  Peer submitter(server.port());
  const std::string leased = submitter.ask("SUBMIT q first\r\nLEASE w q");
  const std::string next =
      fmt::format("NEXT {} {} w q WAIT_MS 60000\r\n", value_of(leased, "task"), value_of(leased, "lease"));
  Peer resp(server.port());
  resp.send("LEASE w q WAIT_MS 60000\r\n");
  resp.say_no_more();
  EXPECT_EQ(resp.hear_all(), "");
  Peer fused(server.port());
  fused.send(next);
  fused.say_no_more();
  EXPECT_EQ(fused.hear_all(), "");
  Peer http(server.http_port());
  http.send(post("lease", R"({"worker":"w","queue":"q","wait_ms":60000})"));
  http.say_no_more();
  EXPECT_EQ(http.hear_all(), "");
  EXPECT_THAT(submitter.ask("GET " + value_of(leased, "task")), HasSubstr("completed"))
      << "what NEXT completed";
  EXPECT_THAT(submitter.ask("SUBMIT q second\r\nLEASE v q"), HasSubstr("payload\r\n$6\r\nsecond"));
}

// X3
TEST(HalfAFrame, IsWaitedForOnlySoLong) {
  const Running server(impatient());
  for (const std::string_view half : {"*2\r\n$4\r\nPI", "PIN", "*2\r\n"}) {
    Peer peer(server.port());
    peer.send(half);
    EXPECT_EQ(peer.hear_all(), "") << half;
  }
  for (const std::string_view half :
       {"POST /v1/queues HT", "POST /v1/queues HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"}) {
    Peer peer(server.http_port());
    peer.send(half);
    EXPECT_EQ(peer.hear_all(), "") << half;
  }
  Peer honest(server.port());
  EXPECT_THAT(honest.ask("PING"), StartsWith("+PONG"));
}

TEST(HalfAFrame, IsNotWhatAQuietConnectionIs) {
  const Running server(impatient());
  Peer quiet(server.port());
  quiet.ask("PING");
  Peer half(server.port());
  half.send("PIN");
  half.hear_all();  // so the time is over
  EXPECT_THAT(quiet.ask("PING"), StartsWith("+PONG"));
}

// X5
TEST(AReaderThatNeverReads, IsNotReadFromAndThenClosed) {
  const Running server(impatient());
  Peer never(server.port());
  const std::string many = [] {
    std::string text;
    for (int count = 0; count < 100; ++count) text += "COMMAND DOCS\r\n";
    return text;
  }();
  const std::size_t sent = never.send_what_it_takes(many, 100'000);
  EXPECT_LT(sent, std::size_t{64} << 20) << "the server took all of it";
  Peer honest(server.port());
  EXPECT_THAT(honest.ask("SUBMIT q x"), HasSubstr("existed"));
  EXPECT_TRUE(never.is_cut_off());
  Peer operator_(server.http_port());
  operator_.send("GET /metrics HTTP/1.0\r\n\r\n");
  EXPECT_THAT(operator_.hear_all(), HasSubstr("baton_unsent_bytes 0\n"));
}

// X5
TEST(Connections, AreNoMoreThanOneAddressMayHave) {
  ServerOptions options;
  options.limits.connections_per_address_max = 2;
  const Running server(std::move(options));
  Peer first(server.port());
  first.ask("PING");
  {
    Peer second(server.http_port());
    second.send(post("queues", "{}"));
    second.hear("}");
    EXPECT_THAT(Peer(server.port()).hear_all(),
                StartsWith("-EXHAUSTED too many connections; retry_after_ms="));
    EXPECT_THAT(Peer(server.http_port()).hear_all(), StartsWith("HTTP/1.1 503 "));
  }
  std::string said;
  while (said.find("PONG") == std::string::npos) said = Peer(server.port()).ask("PING");
}

}  // namespace
}  // namespace baton::server
