// A line, driven by hand: what time it is, and what the other side does, is the test's to say.
#include "client/line.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "client/command.h"
#include "tests/network.h"

namespace baton::client {
namespace {

LineOptions line_to(const std::string& address) {
  auto options = line_options(to(address));
  EXPECT_TRUE(options);
  return std::move(*options);
}

// A line with one call on it.
class Driven {
 public:
  explicit Driven(LineOptions options) : options_(std::move(options)) {}

  void call(const Command& command) {
    auto call = std::make_unique<Call>();
    call->words = command.words();
    call->count = command.count();
    call->safety = Safety::repeatable;
    call->done = [this](Result<wire::RespValue> reply, std::int64_t) { reply_ = std::move(reply); };
    line_.add(std::move(call));
  }
  void advance(std::int64_t now) { line_.advance(false, false, now); }
  // What the socket is ready for, until `holds`.
  template <class Holds>
  bool drive(std::int64_t now, Holds holds) {
    return eventually([&] {
      pollfd watched{line_.socket(), static_cast<short>(POLLIN | (line_.wants_to_write() ? POLLOUT : 0)), 0};
      ::poll(&watched, 1, 1);
      line_.advance((watched.revents & (POLLIN | POLLHUP)) != 0, (watched.revents & POLLOUT) != 0, now);
      return holds();
    });
  }
  bool is_answered() const { return reply_ && reply_->has_value(); }
  const Line& line() const { return line_; }

 private:
  const LineOptions options_;
  std::optional<Result<wire::RespValue>> reply_;
  const Line::Tells tells_{.settle =
                               [](Call& call, Result<wire::RespValue> reply) {
                                 std::exchange(call.done, nullptr)(std::move(reply), call.sent_at);
                               },
                           .pushed = [](const wire::RespValue&) {}};
  Line line_{options_, tells_};
};

// A name server that answers when it is told to.
class NameServer {
 public:
  ~NameServer() { answer(); }
  Lookup::Resolve resolve() {
    return [this, answered = answers_.get_future().share(), done = &done_](const Address& address) {
      ++asked_;
      answered.wait();
      auto found = client::resolve({"127.0.0.1", address.port});
      done->set_value();
      return found;
    };
  }
  void answer() {
    if (std::exchange(has_answered_, true)) return;
    answers_.set_value();
    if (asked_ > 0) done_.get_future().wait();
  }
  int asked() const { return asked_; }

 private:
  std::promise<void> answers_;
  std::promise<void> done_;
  std::atomic<int> asked_ = 0;
  bool has_answered_ = false;
};

TEST(Line, WaitsForNoNameServer) {
  const ScriptedServer server([](const Words& words) { return greeting_or(words, "+PONG\r\n"); });
  const std::string port = parse_address(server.address())->port;
  NameServer names;
  LineOptions options = line_to("coordinator.test:" + port);
  options.resolve = names.resolve();
  Driven driven(options);
  driven.call(Command("PING"));
  const std::int64_t now = now_ms();
  driven.advance(now);  // returns although there is no answer
  EXPECT_EQ(driven.line().wakes_at(), now + options.connect_timeout.ms);
  names.answer();
  EXPECT_TRUE(driven.drive(now, [&] { return driven.is_answered(); }));
}

TEST(Line, LeavesANameThatTakesTooLongAndAsksForItOnce) {
  std::atomic<bool> answers = false;
  const ScriptedServer server(
      [&](const Words& words) { return greeting_or(words, answers ? "+PONG\r\n" : "hello\r\n"); });
  const Address address = *parse_address(server.address());
  NameServer names;
  LineOptions options = line_to("coordinator.test:" + address.port);
  options.addresses.push_back(address);
  options.resolve = names.resolve();
  Driven driven(options);
  driven.call(Command("PING"));
  std::int64_t now = now_ms();
  driven.advance(now);
  driven.advance(now + options.connect_timeout.ms - 1);
  EXPECT_EQ(driven.line().trouble(), "not connected yet");
  now += options.connect_timeout.ms;
  driven.advance(now);  // goes to the number
  EXPECT_EQ(driven.line().trouble(), "it takes too long to look up coordinator.test");
  EXPECT_TRUE(driven.drive(now, [&] { return driven.line().trouble().starts_with("the reply cannot"); }));
  answers = true;
  now += options.backoff_max.ms;
  driven.advance(now);  // and back to the name
  EXPECT_TRUE(eventually([&] { return names.asked() == 1; }));
  names.answer();
  EXPECT_TRUE(driven.drive(now, [&] { return driven.is_answered(); }));
  EXPECT_EQ(names.asked(), 1);
}

// Somebody who takes a connection and reads from it when he is told to.
class SlowReader {
 public:
  SlowReader() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int bytes = 32 << 10;
    ::setsockopt(listener_.number(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* at = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.number(), at, length), 0);
    EXPECT_EQ(::listen(listener_.number(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.number(), at, &length), 0);
    port_ = ::ntohs(address.sin_port);
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  void accept() { peer_ = Descriptor(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC)); }
  void say(const std::string& text) const {
    EXPECT_EQ(::send(peer_.number(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  std::size_t read() const {  // what there is
    std::size_t all = 0;
    char bytes[16384];
    for (ssize_t got = 0; (got = ::recv(peer_.number(), bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
      all += static_cast<std::size_t>(got);
    return all;
  }

 private:
  Descriptor listener_;
  Descriptor peer_;
  std::uint16_t port_ = 0;
};

// A long command on a slow network, up to where nobody takes more of it.
class LongCommand : public ::testing::Test {
 protected:
  LongCommand() : driven_(line_to(reader_.address())) {
    driven_.call(Command("SUBMIT").add("q").add(std::string(kBytes, 'x')));
    driven_.advance(now_);
    EXPECT_TRUE(driven_.drive(now_, [&] { return driven_.line().wakes_at() > 0; }));
    reader_.accept();
    reader_.say("+OK\r\n");
    EXPECT_TRUE(driven_.drive(now_, [&] { return driven_.line().trouble().empty(); }));
    driven_.drive(now_, [&] { return is_stuck(); });
  }
  bool is_stuck() {
    pollfd watched{driven_.line().socket(), POLLOUT, 0};
    return ::poll(&watched, 1, 20) == 0;
  }

  static constexpr std::size_t kBytes = std::size_t{3} << 20;
  const Duration silence_max_ = ClientOptions().silence_max;
  SlowReader reader_;
  Driven driven_;
  std::int64_t now_ = now_ms();
};

// X2: two megabytes over a slow line take longer than a coordinator may be silent.
TEST_F(LongCommand, MayTakeItsTimeToLeave) {
  std::size_t read = 0;
  int pauses = 0;
  while (read < kBytes) {
    now_ += silence_max_.ms - 1;
    ++pauses;
    const std::size_t before = read;
    // Some more is taken at this time of the clock.
    ASSERT_TRUE(driven_.drive(now_, [&] {
      read += reader_.read();
      return read > before && (driven_.line().wakes_at() >= now_ + silence_max_.ms || read >= kBytes);
    })) << read;
    ASSERT_EQ(driven_.line().trouble(), "") << read;
  }
  EXPECT_GT(pauses, 3);
  // And from its last byte on there is as much time again.
  driven_.advance(now_ + silence_max_.ms - 1);
  EXPECT_EQ(driven_.line().trouble(), "");
  reader_.say("+OK\r\n");
  EXPECT_TRUE(driven_.drive(now_, [&] { return driven_.is_answered(); }));
}

TEST_F(LongCommand, IsNotWaitedForWhenNobodyTakesIt) {
  driven_.advance(now_ + silence_max_.ms - 1);
  EXPECT_EQ(driven_.line().trouble(), "");
  driven_.advance(now_ + silence_max_.ms);
  EXPECT_EQ(driven_.line().trouble(), "the coordinator has fallen silent");
}

}  // namespace
}  // namespace baton::client
