#include "server/connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace baton::server {
namespace {

constexpr std::size_t kHalvesMax = 100;

// Has part of a command. Nothing more is read of it while all together have too much.
class Holder final : public Session {
 public:
  Holder(std::size_t bytes, std::size_t& sum, std::vector<std::size_t>& given_up)
      : bytes_(bytes), sum_(sum), given_up_(given_up) {
    sum_ += bytes_;
  }
  ~Holder() override { sum_ -= bytes_; }

  void receive(std::string_view) override {}
  void resume() override {}
  bool wants_more() const override { return !is_held_back(); }
  bool is_closing() const override { return false; }
  bool is_idle() const override { return true; }
  bool is_waiting() const override { return false; }
  bool is_halfway() const override { return true; }
  bool is_held_back() const override { return sum_ >= kHalvesMax; }
  std::size_t half_bytes() const override { return bytes_; }
  void access_changed() override {}
  void give_up() override { given_up_.push_back(bytes_); }

 private:
  const std::size_t bytes_;
  std::size_t& sum_;
  std::vector<std::size_t>& given_up_;
};

struct HeldBack {
  // Who has part of a command of so many bytes.
  void add(std::size_t bytes, Duration at = {}) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    others.emplace_back(ends[1]);
    auto holder = std::make_unique<Holder>(bytes, sum, given_up);
    last = holder.get();
    connections.add(std::make_unique<Connection>(Descriptor(ends[0]), std::move(holder), nullptr,
                                                 Instant{} + at, alike, unsent));
  }
  void look_after(Duration time) { connections.close_stuck(Instant{} + time, seconds(30)); }

  std::size_t sum = 0;
  std::vector<std::size_t> given_up;
  std::uint64_t alike = 0, unsent = 0;
  std::vector<Descriptor> others;
  Session* last = nullptr;
  Poller poller;
  Connections connections{poller};
};

// X5
TEST(WhoIsLookedAfter, GivesRoomBack) {
  HeldBack all;
  all.add(10);
  all.last->output().reserve(100'000);
  all.look_after(seconds(1));
  EXPECT_LT(all.last->output().capacity(), 10'000u);
}

// X5: what stood still was not they.
TEST(WhoIsHalfway, IsNotBlamedForAPauseOfOurs) {
  HeldBack all;
  all.add(10);
  all.connections.begin_anew(Instant{} + minutes(5));
  all.look_after(minutes(5));
  EXPECT_EQ(all.connections.size(), 1u);
}

// X5
TEST(WhoIsHeldBack, IsGivenUpOnlyIfItHasMost) {
  HeldBack all;
  for (const std::size_t bytes : {30u, 50u, 40u}) all.add(bytes);
  all.look_after(seconds(31));
  EXPECT_EQ(all.given_up, std::vector<std::size_t>{50});
  all.look_after(seconds(61));
  EXPECT_EQ(all.connections.size(), 2u) << "their time began anew";
  all.look_after(seconds(62));
  EXPECT_EQ(all.connections.size(), 0u) << "there was room, and nothing came";
}

// X5: what somebody could not send for the sake of others he is not blamed for.
TEST(WhoIsHeldBack, HasItsTimeOnceThereIsRoom) {
  HeldBack all;
  for (const std::size_t bytes : {50u, 40u}) all.add(bytes);
  all.add(10, seconds(5));
  all.look_after(seconds(31));
  EXPECT_EQ(all.given_up, std::vector<std::size_t>{50});
  all.look_after(seconds(36));
  EXPECT_EQ(all.connections.size(), 2u)
      << "half a minute after it came, and it can send again since a moment";
}

// X5: likewise if nobody had to be closed for it.
TEST(WhoIsHeldBack, HasItsTimeOnceOthersHaveGone) {
  HeldBack all;
  all.add(10);
  all.sum += 90;
  all.look_after(seconds(29));
  all.sum -= 90;
  for (const Duration time : {seconds(30), seconds(31), seconds(60)}) all.look_after(time);
  EXPECT_EQ(all.given_up, std::vector<std::size_t>{});
  all.look_after(seconds(61));
  EXPECT_EQ(all.given_up, std::vector<std::size_t>{10});
}

// X5: what is kept of a command grows by doubling, so many have as much.
TEST(WhoIsHeldBack, GoesFirstOfThoseThatHaveAsMuchIfItHasWaitedLongest) {
  HeldBack all;
  all.add(50);
  all.add(50, seconds(20));
  all.look_after(seconds(31));
  ASSERT_EQ(all.given_up.size(), 1u);
  char none;
  EXPECT_EQ(::recv(all.others[0].number(), &none, 1, MSG_DONTWAIT), 0);
  EXPECT_EQ(::recv(all.others[1].number(), &none, 1, MSG_DONTWAIT), -1) << "it is there";
}

// X5: whoever comes again and again would otherwise always have time left.
TEST(WhoIsHeldBack, GoesIfItHasMostWhoeverHasWaitedForRoom) {
  HeldBack all;
  all.add(20);
  all.add(80, seconds(20));
  all.look_after(seconds(31));
  EXPECT_EQ(all.given_up, std::vector<std::size_t>{80});
}

}  // namespace
}  // namespace baton::server
