// The server on real sockets, with peers that behave badly.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <list>
#include <set>
#include <thread>

#include "server/access.h"
#include "server/desk.h"
#include "tests/peer.h"

namespace baton::server {
namespace {

using testing::AllOf;
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
    EXPECT_THAT(peer.hear_all(), StartsWith("-PROTOCOL_ERROR half a command")) << half;
  }
  for (const std::string_view half :
       {"POST /v1/queues HT", "POST /v1/queues HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"}) {
    Peer peer(server.http_port());
    peer.send(half);
    EXPECT_THAT(peer.hear_all(), AllOf(StartsWith("HTTP/1.1 408 "), HasSubstr("half a request"))) << half;
  }
  Peer honest(server.port());
  EXPECT_THAT(honest.ask("PING"), StartsWith("+PONG"));
}

TEST(HalfAFrame, IsNotWaitedForLongerIfItComesByteByByte) {
  const Running server(impatient());
  Peer dribbler(server.port());
  dribbler.send("*2\r\n$1000000\r\n");
  std::size_t sent = 0;
  while (sent < 3000 && !dribbler.is_cut_off(milliseconds(10)))
    sent += dribbler.tries_to_send("x") ? 1 : 3000;
  EXPECT_LT(sent, 3000u);
}

// A clock that can be made to leap, as after the machine was suspended.
class LeapingClock final : public engine::Clock {
 public:
  Instant wall() override { return Instant{} + hours(1); }
  Duration since_boot() override { return steady() + milliseconds(leapt_ms_); }
  void leap(Duration by) { leapt_ms_ += by.ms; }

 private:
  static Duration steady() {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return milliseconds(std::chrono::duration_cast<std::chrono::milliseconds>(since).count());
  }
  std::atomic<std::int64_t> leapt_ms_ = 0;
};

TEST(HalfAFrame, IsNotBlamedForAPauseOfTheServer) {
  LeapingClock clock;
  ServerOptions options;
  options.coordinator.clock = &clock;
  const Running server(std::move(options));
  Peer half(server.port()), other(server.port());
  half.send("*2\r\n$4\r\nPING\r\n$4\r\nhe");
  for (int turns = 0; turns < 2; ++turns) other.ask("PING");
  clock.leap(minutes(5));
  for (int turns = 0; turns < 2; ++turns) other.ask("PING");  // so it has looked who is stuck
  half.send("re\r\n");
  EXPECT_EQ(half.hear("here\r\n"), "$4\r\nhere\r\n");
}

// Who sends a blob drop by drop would keep everybody else's from being sent.
TEST(HalfABlob, IsNotWaitedForLongerIfItComesByteByByte) {
  ServerOptions options = impatient();
  options.limits.blobs.transfers_max = 1;
  const Running server(std::move(options));
  Peer(server.port()).ask("SUBMIT q x KEY k");
  const std::string hash(64, 'a');
  const auto put = [&](std::string_view length) {
    return fmt::format("PUT /v1/blobs/{}?task=key:k HTTP/1.1\r\nHost: localhost\r\n{}\r\n", hash, length);
  };
  Peer dribbler(server.http_port());
  dribbler.send(put("Content-Length: 1000000\r\nExpect: 100-continue\r\n"));
  EXPECT_THAT(dribbler.hear("\r\n\r\n"), StartsWith("HTTP/1.1 100"));
  Peer other(server.http_port());
  other.send(put("Content-Length: 1\r\n") + "x");
  EXPECT_THAT(other.hear_all(), HasSubstr("too many blobs are on their way"));
  std::size_t sent = 0;
  while (sent < 3000 && !dribbler.is_cut_off(milliseconds(10)))
    sent += dribbler.tries_to_send("x") ? 1 : 3000;
  EXPECT_LT(sent, 3000u);
  std::string heard;
  do {  // until the disk has put the last drop aside
    Peer next(server.http_port());
    next.send(put("Content-Length: 1\r\n") + "x");
    heard = next.hear("}}");
  } while (heard.contains("too many blobs are on their way"));
  EXPECT_THAT(heard, HasSubstr("not those that the name"));
}

TEST(ABlob, WhoseLengthIsNotToldIsNotWaitedFor) {
  const Running server;
  Peer peer(server.http_port());
  peer.send("PUT /v1/blobs/" + std::string(64, 'a') + "?task=key:k HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(peer.hear_all(), AllOf(StartsWith("HTTP/1.1 411 "), HasSubstr("Content-Length")));
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
TEST(HalfAFrame, IsReadOnWhenThereIsRoomForItAgain) {
  ServerOptions options;
  options.limits.half_bytes_max = 3'000'000;
  const Running server(std::move(options));
  const auto half_bytes = [&] {
    Peer asks(server.http_port());
    asks.send("GET /metrics HTTP/1.0\r\n\r\n");
    const std::string metrics = asks.hear_all();
    const std::string_view name = "\nbaton_half_bytes ";
    return std::stoul(metrics.substr(metrics.find(name) + name.size()));
  };
  const auto begins = [](int bytes, int come) {
    return fmt::format("*2\r\n$4\r\nECHO\r\n${}\r\n{}", bytes, std::string(come, 'x'));
  };
  Peer honest(server.port());
  auto half = std::make_unique<Peer>(server.port());
  half->send(begins(4'000'000, 0));
  // Piece by piece: behind bytes that the server leaves unread it does not see that its peer has gone.
  while (half_bytes() < 3'000'000) half->send(std::string(50'000, 'x'));
  const std::size_t full = half_bytes();
  const std::jthread sends([&] { honest.send(begins(1'000'000, 1'000'000) + "\r\n"); });
  while (half_bytes() <= full + Desk::kSmall) continue;  // now no more is read of it
  half.reset();
  EXPECT_EQ(honest.hear("x\r\n").size(), 10u + 1'000'000 + 2);
}

// X5: neither by talking, nor by saying nothing.
TEST(AStranger, DoesNotKeepItsPlaceForLong) {
  const TemporaryDirectory secrets;
  ServerOptions options = impatient();
  options.tokens = secrets.path() + "/tokens";
  const NewToken token = make_token();
  std::ofstream(options.tokens) << "ci " << token.hash << " *=all\n";
  const Running server(std::move(options));
  Peer known(server.port());
  known.ask("AUTH " + token.token);
  EXPECT_EQ(Peer(server.http_port()).hear_all(), "");
  EXPECT_EQ(Peer(server.port()).hear_all(), "");
  Peer talker(server.port());
  std::size_t said = 0;
  while (said < 3000 && !talker.is_cut_off(milliseconds(10)))
    said += talker.tries_to_send("PING\r\n") ? 1 : 3000;
  EXPECT_LT(said, 3000u);
  EXPECT_THAT(known.ask("PING"), StartsWith("+PONG"));
}

// X5: without any the log could not go on, nor could what lies in it be read.
TEST(Descriptors, AreNotAllForConnections) {
  const Running server;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  constexpr int kKept = 128;
  const int taken = Descriptor(::dup(STDERR_FILENO)).number();
  const rlimit few{.rlim_cur = static_cast<rlim_t>(taken + 40 + kKept), .rlim_max = before.rlim_max};
  Peer first(server.port());
  first.ask("PING");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::list<Peer> peers;
  while (peers.size() < 50) peers.emplace_back(server.port());
  EXPECT_THAT(peers.back().hear_all(), StartsWith("-EXHAUSTED too many connections"));
  EXPECT_THAT(first.ask("PING"), StartsWith("+PONG"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
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

// X5: also what is answered while the socket takes nothing.
TEST(AReaderThatNeverReads, IsCountedWithAllThatItLeavesUnread) {
  ServerOptions options;
  options.limits.output_bytes_max = 1'000'000;
  const Running server(std::move(options));
  Peer never(server.port());
  const std::string ping = "PING " + std::string(900, 'x') + "\r\n";
  std::string many;
  for (int count = 0; count < 1000; ++count) many += ping;
  never.send_what_it_takes(many, 100);
  Peer operator_(server.http_port());
  operator_.send("GET /metrics HTTP/1.0\r\n\r\n");
  const std::string metrics = operator_.hear_all();
  const std::size_t at = metrics.find("\nbaton_unsent_bytes ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(std::stoul(metrics.substr(at + 20)), 900'000u);
}

// X5
TEST(AFlood, KeepsNobodyFromRenewingALease) {
  const Running server;
  Peer honest(server.port());
  const std::string leased = honest.ask("SUBMIT q x\r\nLEASE w q TTL_MS 600000");
  const std::string extend =
      fmt::format("EXTEND {} {} TTL_MS 600000", value_of(leased, "task"), value_of(leased, "lease"));
  const auto repeated = [](std::string_view text) {
    std::string many;
    while (many.size() < 60'000) many += text;
    return many;
  };
  const std::string half = "*2\r\n$4\r\nECHO\r\n$4000000\r\n" + std::string(60'000, 'x');
  const std::string docs = repeated("COMMAND DOCS\r\n"), lists = repeated("TASKS STATE dead\r\n");
  const std::string pages = repeated("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::list<Peer> flood;
  std::vector<std::chrono::steady_clock::duration> waited;
  for (int each = 0; each < 100; ++each) {
    for (const std::string* said : {&half, &docs, &lists}) flood.emplace_back(server.port()).send(*said);
    flood.emplace_back(server.http_port()).send(pages);
    const auto asked = std::chrono::steady_clock::now();
    EXPECT_THAT(honest.ask(extend), HasSubstr("ttl_ms")) << each;
    waited.push_back(std::chrono::steady_clock::now() - asked);
  }
  // A busy machine may stand still now and then, but not for half of them.
  std::ranges::sort(waited);
  EXPECT_LT(waited[waited.size() / 2], std::chrono::seconds(1));
  EXPECT_LT(waited.back(), std::chrono::seconds(30));
}

// X3: what was held back while too much was unsent goes on when it is sent, with nothing more coming in.
TEST(Pipeline, GoesOnWhenItsRepliesAreRead) {
  ServerOptions options;
  options.limits.output_bytes_max = 10'000;
  const Running server(std::move(options));
  Peer peer(server.port());
  const std::string id = value_of(peer.ask("SUBMIT q " + std::string(3'000, 'x')), "task");
  std::string many;
  for (int count = 0; count < 100; ++count) many += "GET " + id + "\r\n";
  peer.send(many + "PING last\r\n");
  EXPECT_THAT(peer.hear("last\r\n"), HasSubstr("$4\r\nlast\r\n"));

  Peer browser(server.http_port());
  std::string pages;
  for (int count = 0; count < 5; ++count) pages += "GET /v1/openapi.json HTTP/1.1\r\n\r\n";
  browser.send(pages + "GET /healthz HTTP/1.1\r\n\r\n");
  EXPECT_THAT(browser.hear("alive\n"), HasSubstr("alive\n"));
}

#if !defined(__SANITIZE_ADDRESS__)  // which keeps memory that was given back
// How much more memory the server needed at most while 64 connections each said this so often.
long memory_for_many(const std::string& command, int times) {
  const Running server;
  const auto peak_bytes = [] {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss * 1024;
  };
  const long before = peak_bytes();
  {
    std::vector<std::jthread> submitters;
    for (int each = 0; each < 64; ++each) {
      submitters.emplace_back([&] {
        Peer peer(server.port());
        for (int count = 0; count < times; ++count) peer.send(command);
        peer.say_no_more();
        peer.hear_all();
      });
    }
  }
  return peak_bytes() - before;
}

// X5: what is read has to be kept until the disk has taken it. Those who submit together send 400 MB.
TEST(ManyWhoSubmit, AreReadFromAsFastAsTheDiskTakesIt) {
  const std::string task =
      "*3\r\n$6\r\nSUBMIT\r\n$1\r\nq\r\n$200000\r\n" + std::string(200'000, 'x') + "\r\n";
  EXPECT_LT(memory_for_many(task, 32), 180 << 20);
}

// X5: they come as few bytes. Half a million of them take a hundred megabytes for good, and would take a
// gigabyte while all of them wait.
TEST(ManyWhoSubmit, WithNothingInItAreReadFromAsSlowly) {
  std::string tasks = "*1027\r\n$10\r\nSUBMITMANY\r\n$1\r\nq\r\n$4\r\n1024\r\n";
  for (int count = 0; count < 1024; ++count) tasks += "$0\r\n\r\n";
  EXPECT_LT(memory_for_many(tasks, 8), 300 << 20);
}
#endif

// By this clock whatever is done takes 20 ms.
class SlowWorld final : public engine::Clock {
 public:
  Instant wall() override { return Instant{} + hours(1); }
  Duration since_boot() override { return milliseconds(since_boot_ms_ += 20); }

 private:
  std::atomic<std::int64_t> since_boot_ms_ = 0;
};

// X5: however many ask at once, what the first of them asked for is soon on the disk. Within a turn the clock
// is looked at once for each of them, and between two turns more often.
TEST(ATurn, EndsWhenItHasLastedForAWhile) {
  constexpr int kPeers = 20;
  SlowWorld clock;
  ServerOptions options;
  options.coordinator.clock = &clock;
  const Running server(std::move(options));
  Peer warm(server.port());
  warm.ask("SUBMIT q x");  // so the log has room
  std::list<Peer> peers;
  for (int each = 0; each < kPeers; ++each) peers.emplace_back(server.port()).ask("PING");
  int key = 0;
  for (Peer& peer : peers) peer.send(fmt::format("SUBMIT q x KEY {}\r\n", key++));
  for (Peer& peer : peers) EXPECT_THAT(peer.hear("existed\r\n"), HasSubstr("existed"));
  std::set<std::int64_t> created;
  while (key-- > 0) {
    const std::string seen = warm.ask(fmt::format("GET key:{}", key));
    created.insert(std::stoll(value_of(seen, "created_at")));
  }
  ASSERT_EQ(created.size(), std::size_t{kPeers});
  for (auto next = std::next(created.begin()); next != created.end(); ++next)
    EXPECT_GT(*next - *std::prev(next), 20);
}

// X3
TEST(Pipeline, IsNotBegunBehindACommandThatWaits) {
  const Running server;
  Peer peer(server.port());
  peer.send("SUBMIT first a\r\nLEASE w second WAIT_MS 20\r\nSUBMIT second b\r\nPING last\r\n");
  EXPECT_THAT(peer.hear("last\r\n"), HasSubstr("tasks\r\n*0\r\n"));
}

// X4
TEST(Tokens, ThatWereTakenAwayAreWorthNothing) {
  const TemporaryDirectory temporary;
  const std::string file = temporary.path() + "/tokens";
  const NewToken ci = make_token(), ops = make_token();
  const auto allow = [&](const std::string& lines) { std::ofstream(file) << lines; };
  allow("ci " + ci.hash + " *=all\nops " + ops.hash + " *=all\n");
  ServerOptions options;
  options.tokens = file;
  const Running server(std::move(options));
  Peer gone(server.port()), stays(server.port()), watcher(server.http_port());
  EXPECT_THAT(gone.ask("AUTH " + ci.token + "\r\nQUEUES"), HasSubstr("queues"));
  EXPECT_THAT(stays.ask("AUTH " + ops.token + "\r\nQUEUES"), HasSubstr("queues"));
  watcher.send("GET /v1/events HTTP/1.1\r\nAuthorization: Bearer " + ci.token + "\r\n\r\n");
  watcher.hear("\r\n\r\n");
  allow("ops " + ops.hash + " default=submit\n");
  ::kill(::getpid(), SIGHUP);
  watcher.hear_all();  // so it is done
  EXPECT_THAT(gone.ask("QUEUES"), StartsWith("-NOAUTH "));
  EXPECT_THAT(stays.ask("QUEUES"), StartsWith("-NOPERM "));
}

// X4: it changes who may do what.
TEST(Reload, IsWrittenDownInTheAuditFile) {
  const TemporaryDirectory temporary;
  const std::string tokens = temporary.path() + "/tokens", audit = temporary.path() + "/audit";
  const NewToken ops = make_token();
  std::ofstream(tokens) << "ops " << ops.hash << " *=all\n";
  ServerOptions options;
  options.tokens = tokens;
  options.audit = audit;
  const Running server(std::move(options));
  const auto written = [&] {
    std::ifstream in(audit);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  Peer(server.port()).ask("AUTH " + ops.token);  // so it hears signals
  ::kill(::getpid(), SIGHUP);
  while (!written().contains(R"("ends":1,"outcome":"COMMITTED")")) continue;
  EXPECT_THAT(written(), HasSubstr(R"("who":"SIGHUP","from":"","what":"reload")"));
  std::ofstream(tokens) << "nonsense\n";
  ::kill(::getpid(), SIGHUP);
  while (!written().contains(R"("ends":3,"outcome":"INVALID_REQUEST")")) continue;
}

// X4: neither because it was there before.
TEST(Tokens, ThatWereTakenAwayGetNothingTheyWaitFor) {
  const TemporaryDirectory temporary;
  const std::string file = temporary.path() + "/tokens";
  const NewToken gone = make_token(), less = make_token(), ops = make_token();
  const auto allow = [&](const std::string& lines) { std::ofstream(file) << lines; };
  allow(fmt::format("gone {} *=all\nless {} *=all\nops {} *=all\n", gone.hash, less.hash, ops.hash));
  ServerOptions options;
  options.tokens = file;
  const Running server(std::move(options));
  std::list<Peer> waiting;
  for (const NewToken& who : {gone, less, ops}) {
    waiting.emplace_back(server.port()).ask("AUTH " + who.token);
    waiting.back().send("LEASE w q WAIT_MS 600000\r\n");
    waiting.emplace_back(server.http_port())
        .send(post("lease", R"({"worker":"w","queue":"q","wait_ms":600000})",
                   "Authorization: Bearer " + who.token + "\r\n"));
  }
  Peer stays(server.port());
  stays.ask("AUTH " + ops.token);
  while (!stays.ask("INFO").contains("total_commands_processed:6")) {
  }
  allow(fmt::format("less {} *=submit\nops {} *=all\n", less.hash, ops.hash));
  ::kill(::getpid(), SIGHUP);
  for (int each = 0; each < 4; ++each) {
    EXPECT_EQ(waiting.front().hear_all(), "");
    waiting.pop_front();
  }
  stays.ask("SUBMIT q first\r\nSUBMIT q second");
  EXPECT_THAT(waiting.front().hear("payload\r\n$"), HasSubstr("lease"));
  EXPECT_THAT(waiting.back().hear("payload"), HasSubstr("lease"));
}

// X4: a web page can make its reader's browser ask.
TEST(Browser, CannotBeMadeToAskForAnotherSite) {
  const Running server;
  Peer resp(server.port());
  resp.send("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nSUBMIT evil payload\r\n");
  EXPECT_THAT(resp.hear_all(), StartsWith("-PROTOCOL_ERROR this is HTTP"));
  const auto asks = [&](const std::string& headers) {
    Peer browser(server.http_port());
    browser.send("GET /v1/queues HTTP/1.0\r\n" + headers + "\r\n");
    return browser.hear_all();
  };
  EXPECT_THAT(asks("Host: 127.0.0.1:1\r\nOrigin: http://evil.example\r\n"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(asks("Host: evil.example\r\n"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(asks("Host: localhost:1\r\nOrigin: http://localhost:1\r\n"), HasSubstr("\"queues\":[]"));
  EXPECT_THAT(asks("Host: [::1]:1\r\n"), HasSubstr("\"queues\":[]"));
}

TEST(Pages, AreThoseThatTheDocumentLists) {
  const Running server;
  for (const char* page : {"/v1/openapi.json", "/metrics", "/healthz", "/readyz"}) {
    Peer peer(server.http_port());
    peer.send(fmt::format("GET {} HTTP/1.0\r\n\r\n", page));
    const std::string heard = peer.hear_all();
    EXPECT_THAT(heard, StartsWith("HTTP/1.1 200 OK\r\n")) << page;
    EXPECT_THAT(heard, testing::EndsWith("\n")) << page;
  }
}

TEST(Head, HasNoBody) {
  const Running server;
  Peer peer(server.http_port());
  peer.send("HEAD /healthz HTTP/1.0\r\n\r\n");
  const std::string heard = peer.hear_all();
  EXPECT_THAT(heard, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(heard, testing::EndsWith("\r\n\r\n"));
}

// X6
TEST(AStop, AnswersWhoeverWaits) {
  Running server;
  Peer resp(server.port());
  resp.send("LEASE w q WAIT_MS 60000\r\n");
  Peer http(server.http_port());
  http.send(post("lease", R"({"worker":"w","queue":"q","wait_ms":60000})"));
  Peer(server.port()).ask("PING");  // so both have been heard
  server.stop();
  EXPECT_THAT(resp.hear_all(), HasSubstr("tasks\r\n*0\r\n"));
  EXPECT_THAT(http.hear_all(), HasSubstr("\"tasks\":[]"));
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
