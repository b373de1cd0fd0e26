#include "server/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/room.h"

namespace baton::server {
namespace {

// Of what is long, in the time for which one may be stuck. It may take as long as it needs, but who moves it
// drop by drop keeps its place, and memory, from others.
constexpr std::uint64_t kLeastMoved = std::uint64_t{256} << 10;
// Room for what is to be sent: so much stays with a connection until it is next looked at, so that whoever is
// busy is not always given it anew, and so much for good.
constexpr std::size_t kRoomWhileBusy = std::size_t{512} << 10;
constexpr std::size_t kRoomForGood = 4 << 10;

}  // namespace

Connection::Connection(Descriptor socket, std::unique_ptr<Session> session,
                       std::unique_ptr<wire::TlsFilter> tls, Instant now, std::uint64_t& alike,
                       std::uint64_t& unsent)
    : socket_(std::move(socket)),
      session_(std::move(session)),
      tls_(std::move(tls)),
      got_on_(now),
      alike_(alike),
      unsent_(unsent) {
  const int yes = 1;
  ::setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  // Whose machine is gone says no more, not even that; he would keep his place for ever.
  ::setsockopt(socket_.number(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  for (const auto& [option, value] : {std::pair(TCP_KEEPIDLE, 60), {TCP_KEEPINTVL, 15}, {TCP_KEEPCNT, 4}})
    ::setsockopt(socket_.number(), IPPROTO_TCP, option, &value, sizeof value);
  ++alike_;
}

Connection::~Connection() {
  --alike_;
  unsent_ -= own_unsent_;
}

bool Connection::read(std::span<char> buffer, const std::function<void(std::size_t)>& came) {
  // A session that wants no more is only told when the other side has gone.
  const bool peeks = !session_->wants_more();
  const std::size_t most = peeks ? 1 : buffer.size();
  const ssize_t count = ::recv(socket_.number(), buffer.data(), most, peeks ? MSG_PEEK : 0);
  if (count < 0 && errno == EINTR) return true;
  if (count < 0 && errno == EAGAIN) return false;
  if (count <= 0) {
    ended_ = true;
    broken_ = count < 0;
    return false;
  }
  if (peeks) {
    ended_ = has_left();
    return true;
  }
  const auto got = static_cast<std::size_t>(count);
  came_ += got;
  came(got);
  if (!take({buffer.data(), got})) ended_ = true;
  return got == most || hung_up_;
}

Status Connection::take(std::string_view bytes) {
  if (!tls_) {
    session_->receive(bytes);
    return {};
  }
  const bool was_ready = tls_->is_ready();
  std::string plain;
  const Status taken = tls_->receive(bytes, plain);
  if (!was_ready && tls_->is_ready()) {
    if (const std::string name = tls_->peer_name(); !name.empty()) session_->certified(name);
  }
  if (!plain.empty()) session_->receive(plain);
  return taken;
}

std::string& Connection::filtered_output() {
  std::string& plain = session_->output();
  if (!tls_) return plain;
  // What is encrypted is no longer the session's, which stops when it has too much unsent: not before the
  // socket has taken all there was.
  if (tls_->output().size() == sent_) {
    tls_->send(plain);
    baton::give_back_room(plain, kRoomWhileBusy);
  }
  if (session_->is_closing() && session_->is_idle() && plain.empty()) tls_->finish();
  return tls_->output();
}

bool Connection::write(Instant now) {
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    session_->resume();  // also with what it left alone while too much was unsent
    if (!send_output(now)) return true;
  }
  return false;
}

void Connection::count_unsent() {
  const std::size_t left = output_left() + (tls_ ? session_->output().size() : 0) + session_->held_bytes();
  unsent_ += left - std::exchange(own_unsent_, left);
}

// True if there was something to send, and all of it is sent.
bool Connection::send_output(Instant now) {
  std::string& output = filtered_output();
  if (output.size() == sent_ || broken_) return false;
  const ssize_t count = ::send(socket_.number(), output.data() + sent_, output.size() - sent_, MSG_NOSIGNAL);
  if (count < 0) {
    broken_ = errno != EAGAIN;
    return false;
  }
  sent_ += static_cast<std::size_t>(count);
  read_ += static_cast<std::size_t>(count);
  // A long reply is not moved up for every piece that is sent of it.
  const bool is_all = sent_ == output.size();
  if (is_all || read_ >= kLeastMoved) {
    read_ = 0;
    if (session_->moved() == 0 && !session_->is_stranger()) got_on_ = now;
  }
  if (is_all || sent_ > output.size() / 2) {
    output.erase(0, std::exchange(sent_, 0));
    baton::give_back_room(output, kRoomWhileBusy);
  }
  return is_all;
}

// Who has said all he wants may still hear the replies; who waits for what may never come is taken for gone.
bool Connection::is_over() const {
  const bool nothing_due = session_->is_idle() || session_->is_waiting();
  return broken_ || (nothing_due && (ended_ || session_->is_closing()) && !has_output());
}

void Connection::give_back_room() {
  baton::give_back_room(session_->output(), kRoomForGood);
  session_->give_back_room(kRoomForGood);
  if (tls_) tls_->give_back_room(kRoomForGood);
}

// Within a reply that is not wholly sent nothing else can be said.
void Connection::give_up(Instant now) {
  if (has_output() || shakes_hands()) return;
  session_->give_up();
  send_output(now);
}

bool Connection::is_stuck(Instant now, Duration max) {
  const bool is_due = has_output() || session_->is_halfway() || session_->is_stranger() || shakes_hands();
  const std::uint64_t moved = session_->moved();
  const bool has_moved = moved < moved_ || moved - moved_ >= kLeastMoved;  // less: this is the next one
  if (has_moved) moved_ = moved;
  // Who leaves replies unread, or has yet to say who it is, gets nowhere by talking.
  const bool may_talk = !has_output() && !session_->is_stranger() && !shakes_hands();
  const bool gets_on = has_moved || (may_talk && came_ >= kLeastMoved);
  // While it was held back for the sake of others it could not get on.
  const bool is_free_again = std::exchange(was_held_back_, is_held_back()) && !was_held_back_;
  if (!is_due || gets_on || is_free_again) got_on_ = now, came_ = 0;
  return now - got_on_ > max;
}

}  // namespace baton::server
