#include "client/line.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <ranges>
#include <utility>

#include "client/decode.h"
#include "wire/resp.h"

namespace baton::client {
namespace {

using wire::RespValue;
using wire::RespValueParser;

constexpr std::size_t kOutputBytesMax = std::size_t{256} << 10;  // encoded ahead of what the system takes
constexpr std::size_t kSentMax = 8192;                           // calls without an answer on one connection
constexpr std::size_t kReadBytes = std::size_t{64} << 10;

// As Redis answers what only a coordinator knows, and a token where it has no password. A coordinator says
// why with a word of its own.
bool is_of_a_stranger(const RespValue& reply) { return reply.text.starts_with("ERR "); }

// Whoever answers a greeting like this will do so again.
bool is_lasting(const RespValue& reply) {
  return is_of_a_stranger(reply) || error_of(reply).code == Errc::permission_denied ||
         reply.text.starts_with("INVALID_REQUEST") || reply.text.starts_with("NOPROTO") ||
         reply.text.starts_with("UNKNOWN_COMMAND");
}

// A refusal that says nothing of whether the same request was taken before.
bool is_blind(Errc code) {
  return code == Errc::exhausted || code == Errc::no_space || code == Errc::permission_denied;
}

// It was not taken. Of many, each is told so.
bool is_closed(const RespValue& reply) {
  if (reply.type == RespValue::Type::error) return error_of(reply).code == Errc::closed;
  return reply.type == RespValue::Type::array && !reply.items.empty() &&
         std::ranges::all_of(reply.items, is_closed);
}

// The stream is out of step, or only half a command came in time: it was not taken, and nothing follows.
bool is_garbled(const RespValue& reply) {
  return reply.type == RespValue::Type::error && reply.text.starts_with("PROTOCOL_ERROR");
}

constexpr std::string_view kRefusedAgain =
    "outcome unknown: it was sent, and no answer came; when it was to be repeated: ";

// For a call that was sent, to no answer, and is refused when it is to be repeated.
Error refused_again(const Call& call, const Error& error) {
  if (call.safety == Safety::query) return error;
  return {Errc::outcome_unknown,
          std::string(kRefusedAgain) + std::string(word(error.code)) + ": " + error.message,
          error.retry_after};
}

// Likewise for a call of many, each of which has an outcome of its own.
void doubt_refusals(RespValue& list) {
  for (RespValue& item : list.items) {
    if (item.type != RespValue::Type::error || !is_blind(error_of(item).code)) continue;
    item.text = std::string(word(Errc::outcome_unknown)) + ' ' + std::string(kRefusedAgain) + item.text;
  }
}

}  // namespace

std::int64_t now_ms() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

Error unanswered(const Call& call, const std::string& why) {
  if (call.safety == Safety::query) return {Errc::deadline_exceeded, "no answer came: " + why};
  return {Errc::outcome_unknown, "outcome unknown: it was sent, and no answer came: " + why};
}

Error out_of_time(const Call& call, const std::string& trouble) {
  if (call.was_sent) return unanswered(call, trouble.empty() ? "its deadline has passed" : trouble);
  if (trouble.empty()) return {Errc::deadline_exceeded, "it could not be sent before its deadline"};
  return {Errc::unavailable, "no coordinator could be reached: " + trouble};
}

Line::Line(const LineOptions& options, const Tells& tells)
    : options_(options), tells_(tells), lookups_(options.addresses.size()), dice_(std::random_device()()) {}

Line::~Line() { disconnect(); }

int Line::socket() const { return state_ == State::looking_up ? lookups_[address_]->descriptor() : socket_; }

bool Line::wants_to_write() const {
  if (state_ == State::connecting) return true;
  return state_ != State::closed && !(tls_ ? tls_->output() : output_).empty();
}

std::int64_t Line::wakes_at() const {
  if (state_ == State::closed) return pending_.empty() ? LLONG_MAX : retry_at_;
  if (state_ != State::open) return connect_until_;
  if (sent_.empty()) return LLONG_MAX;
  // A long command may take its time to leave: while the system takes more of it somebody lives.
  if (left_calls_ == 0) return std::max(heard_at_, moved_at_) + options_.silence_max.ms;
  return std::max(heard_at_, sent_.front().left_at) + sent_.front().patience;
}

void Line::advance(bool readable, bool writable, std::int64_t now) {
  if (writable) blocked_ = false;
  if (state_ == State::looking_up) {
    if (readable) connect(now);
  } else if (state_ == State::connecting && (readable || writable)) {
    connected(now);
  }
  if (readable) hear(now);
  if (state_ != State::closed && now >= wakes_at()) broke(why_it_is_late(), now);
  // An address that fails at once leaves the line closed, with another one to try or a while to wait.
  while (state_ == State::closed && !pending_.empty() && now >= retry_at_) connect(now);
  if (state_ == State::greeting || state_ == State::open) send(now);
}

void Line::hear(std::int64_t now) {
  if (state_ == State::greeting || state_ == State::open) read(now);
}

std::string Line::why_it_is_late() const {
  if (state_ == State::open) return "the coordinator has fallen silent";
  if (state_ == State::looking_up) return "it takes too long to look up " + options_.addresses[address_].host;
  return "it takes too long to connect";
}

// False: not yet, or it broke.
bool Line::has_endpoints(std::int64_t now) {
  if (!endpoints_.empty()) return true;
  const Address& address = options_.addresses[address_];
  // One that took too long the last time may have come to its end since; a second one would not be faster.
  std::unique_ptr<Lookup>& lookup = lookups_[address_];
  if (!lookup) lookup = std::make_unique<Lookup>(address, options_.resolve);
  auto found = lookup->take();
  if (!found) {
    state_ = State::looking_up;
    connect_until_ = now + options_.connect_timeout.ms;
    return false;
  }
  lookup.reset();
  state_ = State::closed;
  if (!*found || (*found)->empty()) {
    broke(*found ? address.text() + ": the host has no address" : found->error().message, now);
    return false;
  }
  endpoints_ = std::move(**found);
  std::ranges::reverse(endpoints_);
  return true;
}

void Line::connect(std::int64_t now) {
  if (!has_endpoints(now)) return;
  const Endpoint endpoint = std::move(endpoints_.back());
  endpoints_.pop_back();
  auto socket = begin_connecting(endpoint);
  if (!socket) return broke(socket.error().message, now);
  socket_ = *socket;
  state_ = State::connecting;
  connect_until_ = now + options_.connect_timeout.ms;
}

void Line::connected(std::int64_t now) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error != 0) return broke(options_.addresses[address_].text() + ": " + std::strerror(error), now);
  state_ = State::greeting;
  blocked_ = false;
  if (options_.tls) tls_ = options_.tls->connect(options_.addresses[address_].host);
  output_ = options_.greeting;
  given_ = output_.size();
  taken_ = taken_calls_ = left_calls_ = 0;
  greetings_missing_ = options_.greetings;
  parser_ = std::make_unique<RespValueParser>(options_.reply);
}

void Line::read(std::int64_t now) {
  char bytes[kReadBytes];
  for (;;) {
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0 && is_withdrawn_) return give_up({Errc::closed, "withdrawn"});
    if (got <= 0)
      return broke(got == 0 ? "the coordinator closed the connection" : std::string(std::strerror(errno)),
                   now);
    heard_at_ = now;
    if (!take_bytes({bytes, static_cast<std::size_t>(got)})) return;
    std::string_view rest = input_;
    for (;;) {
      const RespValueParser::Found found = parser_->parse(rest);
      if (found == RespValueParser::Found::nothing) break;
      if (found == RespValueParser::Found::broken)
        return broke("the reply cannot be read: " + std::string(parser_->complaint()), now);
      take_in(parser_->take());
      if (state_ == State::closed) return;
      if (is_stopping_ && taken_calls_ == 0) return broke("the coordinator is stopping", now);
      if (is_withdrawn_ && taken_calls_ == 0) return hang_up();
    }
    input_.erase(0, input_.size() - rest.size());
    if (static_cast<std::size_t>(got) < sizeof bytes) return;
  }
}

// False if that was the end of the connection.
bool Line::take_bytes(std::string_view bytes) {
  if (!tls_) {
    input_ += bytes;
    return true;
  }
  const Status taken = tls_->receive(bytes, input_);
  if (taken) return true;
  if (state_ == State::greeting && taken.error().code == Errc::permission_denied) {
    turned_away(taken.error());
  } else {
    broke(taken.error().message, now_ms());
  }
  return false;
}

void Line::take_in(RespValue value) {
  if (value.type == RespValue::Type::push) return tells_.pushed(value);
  if (greetings_missing_ > 0) return greeted(value);
  if (taken_calls_ == 0)
    return broke(is_garbled(value) ? value.text : "a reply came that nobody asked for", now_ms());
  // Over the next connection it may arrive whole. Once: if it is the request that cannot be read, whoever
  // made it has to hear so.
  if (is_garbled(value) && !std::exchange(sent_.front().call->was_garbled, true)) {
    sent_.front().call->was_sent = sent_.front().was_sent_before;
    return broke(value.text, now_ms());
  }
  Sent sent = std::move(sent_.front());
  sent_.pop_front();
  --taken_calls_;
  if (left_calls_ > 0) --left_calls_;
  if (is_closed(value)) return was_refused(std::move(sent));
  tried_ = 0;
  const CallPtr call = std::move(sent.call);
  if (call->is_settled()) {
    if (call->orphan) call->orphan(value);
    return;
  }
  if (value.type != RespValue::Type::error) {
    if (sent.was_sent_before && call->safety != Safety::query) doubt_refusals(value);
    return tells_.settle(*call, std::move(value));
  }
  const Error error = error_of(value);
  const bool may_have_happened = sent.was_sent_before && (is_blind(error.code) || is_garbled(value));
  tells_.settle(*call, std::unexpected(may_have_happened ? refused_again(*call, error) : error));
}

// CLOSED: it was not taken, so it is as if it had never been sent on this connection.
void Line::was_refused(Sent sent) {
  is_stopping_ = true;
  sent.call->was_sent = sent.was_sent_before;
  refused_.push_back(std::move(sent.call));
}

void Line::greeted(const RespValue& reply) {
  if (reply.type == RespValue::Type::error) {
    if (is_of_a_stranger(reply))
      return turned_away({Errc::unsupported_version,
                          "whoever listens there is no baton coordinator; look at the address (it says: " +
                              reply.text + ")"});
    if (is_lasting(reply)) return turned_away(error_of(reply));
    return broke(options_.addresses[address_].text() + ": " + error_of(reply).message, now_ms());
  }
  if (--greetings_missing_ > 0) return;
  state_ = State::open;
  endpoints_.clear();
  turned_away_ = 0;
  tell({.address = options_.addresses[address_].text()});
}

void Line::tell(const ConnectionNews& news) const {
  if (options_.news) options_.news(news);
}

// It would happen again, so nobody waits for a better answer if there is nobody else to ask.
void Line::turned_away(const Error& error) {
  const std::int64_t now = now_ms();
  endpoints_.clear();
  const Error where{error.code, options_.addresses[address_].text() + ": " + error.message};
  break_off(where.message, now);
  if (++turned_away_ < options_.addresses.size())
    return tell({.trouble = trouble_,
                 .was_turned_away = true,
                 .address = options_.addresses[address_].text(),
                 .wait = milliseconds(retry_at_ - now)});
  turned_away_ = 0;
  for (const CallPtr& call : std::exchange(pending_, {})) {
    if (call->is_settled()) continue;
    tells_.settle(*call, std::unexpected(call->was_sent ? refused_again(*call, where) : where));
  }
}

void Line::write_out(Call& call, std::int64_t now) {
  call.sent_at = now;
  const std::size_t before = output_.size();
  wire::RespWriter writer(output_);
  writer.array(call.count + (call.wait > Duration{} ? 2 : 0));
  output_ += call.words;
  if (call.wait > Duration{}) {
    // What is left of it, if an earlier connection broke.
    writer.bulk("WAIT_MS");
    writer.bulk(std::to_string(std::max<std::int64_t>(call.wait_until - now, 1)));
  }
  given_ += output_.size() - before;
}

void Line::send(std::int64_t now) {
  for (;;) {
    while (state_ == State::open && !is_stopping_ && !pending_.empty() && sent_.size() < kSentMax &&
           output_.size() < kOutputBytesMax) {
      CallPtr call = std::move(pending_.front());
      pending_.pop_front();
      if (call->is_settled()) continue;
      if (!wants_to_write()) moved_at_ = now;
      write_out(*call, now);
      const std::int64_t waits =
          call->wait > Duration{} ? std::max<std::int64_t>(call->wait_until - now, 0) : 0;
      const bool was_sent = call->was_sent;
      sent_.push_back({.call = std::move(call),
                       .end = given_,
                       .was_sent_before = was_sent,
                       .patience = waits + options_.silence_max.ms});
    }
    if (!send_out(now)) return;
    note_what_left(now);
  }
}

void Line::note_what_left(std::int64_t now) {
  // A command of which the system has not taken every byte is never whole on the other side.
  while (taken_calls_ < sent_.size() && sent_[taken_calls_].end <= taken_)
    sent_[taken_calls_++].call->was_sent = true;
  if (tls_ && !tls_->output().empty()) return;
  while (left_calls_ < taken_calls_) sent_[left_calls_++].left_at = now;
}

// False if there is nothing to send, or nobody takes it for now.
bool Line::send_out(std::int64_t now) {
  if (tls_ && tls_->output().size() < kOutputBytesMax) {
    // Nobody can tell where in encrypted bytes a command ends, so all of them count as taken once any is.
    taken_ += output_.size();
    tls_->send(output_);
    taken_ -= output_.size();  // what was not said yet
  }
  std::string& bytes = tls_ ? tls_->output() : output_;
  if (bytes.empty() || blocked_) return false;
  ssize_t took = -1;
  do {
    took = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  } while (took < 0 && errno == EINTR);
  if (took < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    blocked_ = true;
    return false;
  }
  if (took < 0) {
    broke(std::strerror(errno), now);
    return false;
  }
  moved_at_ = now;
  bytes.erase(0, static_cast<std::size_t>(took));
  if (!tls_) taken_ += static_cast<std::uint64_t>(took);
  return true;
}

void Line::broke(const std::string& why, std::int64_t now) {
  turned_away_ = 0;
  break_off(why, now);
  tell({.trouble = why,
        .address = options_.addresses[address_].text(),
        .wait = milliseconds(retry_at_ - now)});
}

// What was sent and may be repeated goes out again first, in the order in which it was sent.
void Line::break_off(const std::string& why, std::int64_t now) {
  const bool was_open = state_ == State::open;
  trouble_ = why;
  std::deque<Sent> sent = std::exchange(sent_, {});
  std::vector<CallPtr> refused = std::exchange(refused_, {});
  disconnect();

  if (!was_open && endpoints_.empty()) {
    address_ = (address_ + 1) % options_.addresses.size();
    ++tried_;
  } else if (was_open && tried_++ > 0) {
    address_ = (address_ + 1) % options_.addresses.size();
  }
  const auto rounds = static_cast<unsigned>(tried_ / options_.addresses.size());
  retry_at_ = now;
  if (rounds > 0 && tried_ % options_.addresses.size() == 0) {
    const std::int64_t longest = std::max<std::int64_t>(options_.backoff_max.ms, 2);
    const std::int64_t full =
        std::clamp<std::int64_t>(options_.backoff_min.ms << std::min(rounds - 1, 20u), 2, longest);
    retry_at_ += full / 2 + static_cast<std::int64_t>(dice_() % static_cast<std::uint64_t>(full / 2 + 1));
  }

  std::vector<CallPtr> unanswerable;
  for (Sent& one : sent | std::views::reverse) {
    CallPtr& call = one.call;
    if (call->is_settled()) continue;
    if (!call->was_sent || call->may_repeat()) {
      pending_.push_front(std::move(call));
    } else {
      unanswerable.push_back(std::move(call));
    }
  }
  for (CallPtr& call : refused | std::views::reverse) {
    if (!call->is_settled()) pending_.push_front(std::move(call));
  }
  for (const CallPtr& call : unanswerable | std::views::reverse)
    tells_.settle(*call, std::unexpected(unanswered(*call, why)));
}

void Line::withdraw() {
  is_withdrawn_ = true;
  ::shutdown(socket_, SHUT_WR);
}

void Line::disconnect() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  state_ = State::closed;
  tls_.reset();
  sent_.clear();
  output_.clear();
  input_.clear();
  blocked_ = is_stopping_ = is_withdrawn_ = false;
  greetings_missing_ = taken_calls_ = left_calls_ = 0;
}

void Line::forget_settled() {
  const auto is_settled = [](const CallPtr& call) { return call->is_settled(); };
  std::erase_if(pending_, is_settled);
  std::erase_if(refused_, is_settled);
}

void Line::give_up(const Error& error) {
  std::deque<CallPtr> calls;
  for (CallPtr& call : refused_) calls.push_back(std::move(call));
  for (Sent& one : sent_) calls.push_back(std::move(one.call));
  for (CallPtr& call : pending_) calls.push_back(std::move(call));
  refused_.clear();
  pending_.clear();
  disconnect();
  for (const CallPtr& call : calls) {
    if (call->is_settled()) continue;
    tells_.settle(*call, std::unexpected(call->was_sent ? unanswered(*call, error.message) : error));
  }
}

}  // namespace baton::client
