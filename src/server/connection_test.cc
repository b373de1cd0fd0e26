// One connection over TLS, and a reader who is slow.
#include "server/connection.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <list>
#include <utility>

#include "tests/bytes_in_use.h"
#include "tests/certificate.h"

namespace baton::server {
namespace {

constexpr std::size_t kUnreadMax = 100'000;

// Nothing keeps it from going on. What is particular about those below is all that they say.
class Willing : public Session {
 public:
  void receive(std::string_view) override {}
  void resume() override {}
  bool wants_more() const override { return true; }
  bool is_closing() const override { return false; }
  bool is_idle() const override { return true; }
  bool is_waiting() const override { return false; }
  bool is_halfway() const override { return false; }
  void access_changed() override {}
};

// Once asked it has much to say, and no more of it while so much is unread.
class Talker final : public Willing {
 public:
  explicit Talker(std::string text) : text_(std::move(text)) {}

  void receive(std::string_view) override { is_asked_ = true; }
  void resume() override {
    while (is_asked_ && wants_more() && said_ < text_.size()) {
      output_ += text_.substr(said_, kSentence);
      said_ = std::min(said_ + kSentence, text_.size());
    }
  }
  bool wants_more() const override { return output_.size() < kUnreadMax; }
  bool is_closing() const override { return said_ == text_.size(); }

  static constexpr std::size_t kSentence = 10'000;

 private:
  const std::string text_;
  std::size_t said_ = 0;
  bool is_asked_ = false;
};

// It has something more to say whenever it is asked to go on.
class Chatterbox final : public Willing {
 public:
  explicit Chatterbox(int& said) : said_(said) {}

  void resume() override {
    output_ += "and ";
    ++said_;
  }

 private:
  int& said_;
};

// It has said everything at once.
class Announcer final : public Willing {
 public:
  explicit Announcer(std::size_t bytes) { output_.assign(bytes, 'x'); }
};

// It says much once it is asked.
class Giver final : public Willing {
 public:
  static constexpr std::size_t kGift = std::size_t{4} << 20;

  void receive(std::string_view) override {
    if (!std::exchange(is_asked_, true)) output_.assign(kGift, 'x');
  }

 private:
  bool is_asked_ = false;
};

// Has part of a command, however much comes.
class Hearer final : public Willing {
 public:
  explicit Hearer(bool is_stranger) : is_stranger_(is_stranger) {}

  bool is_halfway() const override { return true; }
  bool is_stranger() const override { return is_stranger_; }

 private:
  const bool is_stranger_;
};

// Whom it talks to.
class Listener {
 public:
  Listener(Descriptor socket, std::unique_ptr<wire::TlsFilter> tls)
      : socket_(std::move(socket)), tls_(std::move(tls)) {}

  // As soon as hands are shaken.
  void ask() {
    if (tls_) tls_->send(question_);
    const std::string said = std::exchange(tls_ ? tls_->output() : question_, {});
    EXPECT_EQ(::send(socket_.number(), said.data(), said.size(), 0), static_cast<ssize_t>(said.size()));
  }
  // A little of what has come; false: there was nothing.
  bool listen() {
    char bytes[4096];
    const ssize_t count = ::recv(socket_.number(), bytes, sizeof bytes, 0);
    if (count <= 0) return false;
    if (!tls_) {
      heard.append(bytes, static_cast<std::size_t>(count));
      return true;
    }
    const Status taken = tls_->receive({bytes, static_cast<std::size_t>(count)}, heard);
    has_heard_the_end = !taken && taken.error().code == Errc::closed;
    return true;
  }

  std::string heard;
  bool has_heard_the_end = false;

 private:
  Descriptor socket_;
  std::unique_ptr<wire::TlsFilter> tls_;
  std::string question_ = "what is new?" + std::string(60'000, '?');
};

std::string long_text() {
  std::string text;
  for (int number = 0; text.size() < 5'000'000; ++number) text += std::to_string(number) + " ";
  return text;
}

// X5: otherwise the places of those whose machines lost power would never be free again.
TEST(WhoseMachineIsGone, IsNoticed) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint64_t connections = 0, unsent = 0;
  const Connection connection(Descriptor{socket}, std::make_unique<Announcer>(0), nullptr, {}, connections,
                              unsent);
  const auto option = [&](int level, int name) {
    int value = 0;
    socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(socket, level, name, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  const int seconds = option(IPPROTO_TCP, TCP_KEEPIDLE) +
                      option(IPPROTO_TCP, TCP_KEEPCNT) * option(IPPROTO_TCP, TCP_KEEPINTVL);
  EXPECT_EQ(seconds, 120);
}

// X5: with a reader who is quick it would never end.
TEST(WhoAlwaysHasMoreToSay, LetsOthersHaveTheirPartOfTheTurn) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const Descriptor listener{ends[1]};
  std::uint64_t connections = 0, unsent = 0;
  int said = 0;
  Connection talker(Descriptor{ends[0]}, std::make_unique<Chatterbox>(said), nullptr, {}, connections,
                    unsent);
  EXPECT_FALSE(talker.write({}));
  EXPECT_EQ(said, 4);
}

// X5: what it leaves unread is memory that others cannot have.
TEST(ASlowReader, IsStuckIfItReadsDropByDrop) {
  constexpr std::size_t kLeast = 256 << 10;
  for (const std::size_t every_ten_seconds : {kLeast / 16, kLeast}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    const int little = 16 << 10;
    ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof little);
    const Descriptor reader{ends[1]};
    std::uint64_t connections = 0, unsent = 0;
    Connection talker(Descriptor{ends[0]}, std::make_unique<Announcer>(20 * kLeast), nullptr, {}, connections,
                      unsent);
    talker.write({});
    talker.count_unsent();
    Instant now;
    for (int times = 0; times < 4; ++times) {
      now = now + seconds(10);
      const std::uint64_t before = unsent;
      std::array<char, 4096> drop;
      while (before - unsent < every_ten_seconds) {
        ASSERT_GT(::recv(reader.number(), drop.data(), drop.size(), 0), 0);
        talker.write(now);
        talker.count_unsent();
      }
    }
    EXPECT_EQ(talker.is_stuck(now, seconds(30)), every_ten_seconds < kLeast);
  }
}

// X5: on a slow line a long command takes long. But nobody keeps his place by sending drop by drop, and no
// stranger by sending much.
TEST(HalfACommand, IsWaitedForWhileMoreOfItComes) {
  constexpr std::size_t kLeast = 256 << 10;
  struct Sender {
    std::size_t every_ten_seconds;
    bool is_stranger;
    bool is_stuck;
  };
  for (const Sender& sender :
       {Sender{kLeast, false, false}, {kLeast / 16, false, true}, {kLeast, true, true}}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    const Descriptor other{ends[1]};
    std::uint64_t connections = 0, unsent = 0;
    Connection hearer(Descriptor{ends[0]}, std::make_unique<Hearer>(sender.is_stranger), nullptr, {},
                      connections, unsent);
    Instant now;
    bool is_stuck = false;
    std::array<char, 4096> drop{}, buffer;
    for (int times = 0; times < 4; ++times) {
      now = now + seconds(10);
      for (std::size_t sent = 0; sent < sender.every_ten_seconds; sent += drop.size()) {
        ASSERT_EQ(::send(other.number(), drop.data(), drop.size(), 0), static_cast<ssize_t>(drop.size()));
        hearer.read(buffer, [](std::size_t) {});
      }
      is_stuck = hearer.is_stuck(now, seconds(30));
    }
    EXPECT_EQ(is_stuck, sender.is_stuck) << sender.every_ten_seconds << ' ' << sender.is_stranger;
  }
}

// X5: many of them would take all the memory there is, and no limit would see it.
TEST(AQuietConnection, KeepsLittleOfTheRoomThatALargeReplyNeeded) {
  constexpr std::size_t kMany = 20;
  const Certificate certificate("coordinator");
  const auto server = wire::TlsContext::for_server({certificate.file(), certificate.key(), ""});
  const auto client = wire::TlsContext::for_client({"", "", certificate.file()});
  ASSERT_TRUE(server && client);
  for (const bool has_tls : {false, true}) {
    std::uint64_t alike = 0, unsent = 0;
    std::list<Connection> connections;
    std::array<char, 64 << 10> buffer;
    const std::size_t before = bytes_in_use();
    while (connections.size() < kMany) {
      int ends[2];
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
      Connection& giver =
          connections.emplace_back(Descriptor{ends[0]}, std::make_unique<Giver>(),
                                   has_tls ? (*server)->accept() : nullptr, Instant{}, alike, unsent);
      Listener listener(Descriptor{ends[1]}, has_tls ? (*client)->connect("127.0.0.1") : nullptr);
      while (listener.heard.size() < Giver::kGift || giver.has_output()) {
        listener.ask();
        giver.read(buffer, [](std::size_t) {});
        giver.write({});
        while (listener.listen()) continue;
      }
    }
    EXPECT_LT(bytes_in_use() - before, kMany * (std::size_t{1} << 20)) << "as soon as it was sent";
    for (Connection& giver : connections) giver.give_back_room();
    EXPECT_LT(bytes_in_use() - before, kMany * (std::size_t{64} << 10)) << (has_tls ? "TLS" : "plain");
  }
}

// X5
TEST(ASlowReader, OverTlsHasLittleKeptForIt) {
  const Certificate certificate("coordinator");
  const auto server = wire::TlsContext::for_server({certificate.file(), certificate.key(), ""});
  const auto client = wire::TlsContext::for_client({"", "", certificate.file()});
  ASSERT_TRUE(server && client);
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const int little = 16 << 10;
  ::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &little, sizeof little);

  const std::string text = long_text();
  std::uint64_t connections = 0, unsent = 0, unsent_most = 0;
  Connection talker(Descriptor{ends[0]}, std::make_unique<Talker>(text), (*server)->accept(), {}, connections,
                    unsent);
  Listener listener(Descriptor{ends[1]}, (*client)->connect("127.0.0.1"));
  std::array<char, 64 << 10> buffer;
  while (!talker.is_over()) {
    listener.ask();
    talker.read(buffer, [](std::size_t) {});
    talker.write({});
    talker.count_unsent();
    unsent_most = std::max(unsent_most, unsent);
    listener.listen();
  }
  // What it has to say, and as much again that is encrypted and on its way.
  EXPECT_LT(unsent_most, 2 * (kUnreadMax + Talker::kSentence) + 10'000);
  while (listener.listen()) continue;
  EXPECT_EQ(listener.heard.size(), text.size());
  EXPECT_TRUE(listener.heard == text);
  EXPECT_TRUE(listener.has_heard_the_end);
}

}  // namespace
}  // namespace baton::server
