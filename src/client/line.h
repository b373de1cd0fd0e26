// A line to the coordinator: one connection, made again when it breaks, and the calls that go over it.
//
//   closed --a call wants out--> looking up --> connecting --> greeting --> open
//     ^                              |              |             |           |
//     '---------------- next address, after a while ----------------------------'
//
// A coordinator that stops says CLOSED to what it has not taken. Nothing more is sent to it then; once it has
// answered the rest, what it did not take goes to whoever comes next.
//
// A line owns its calls until they are answered, fail, or it is told to give them up. It is used by one
// thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "client/call.h"
#include "client/line_options.h"
#include "client/lookup.h"
#include "client/types.h"
#include "wire/tls.h"

namespace baton::client {

class Line {
 public:
  // Whom a line tells what happens. `settle` calls a call's done, once.
  struct Tells {
    std::function<void(Call&, Result<wire::RespValue>)> settle;
    std::function<void(const wire::RespValue&)> pushed;
  };

  Line(const LineOptions& options, const Tells& tells);
  ~Line();
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  void add(CallPtr call) { pending_.push_back(std::move(call)); }

  // Does what can be done without waiting: connects, reads, sends, notices that time is up.
  void advance(bool readable, bool writable, std::int64_t now);
  // Takes in what has come, and says nothing.
  void hear(std::int64_t now);
  int socket() const;  // or whatever is to be watched meanwhile; -1: none
  bool wants_to_write() const;
  std::int64_t wakes_at() const;  // when to advance it although nothing happens

  // Some of its calls were settled by others.
  void forget_settled();
  // Every call ends: those that were sent with what is known of them, the others with `error`.
  void give_up(const Error& error);
  // For a line with a single call, which was sent and may bring what nobody wants any more. A coordinator
  // gives up what it waits with for somebody who has ended what he says, and hangs up; but what it has
  // granted by then still comes.
  void withdraw();
  // For a line with a single call, which was settled: its reply must not come later.
  void hang_up() { disconnect(); }
  bool is_idle() const { return pending_.empty() && sent_.empty() && refused_.empty(); }

  // Why there is no connection; empty if there is one.
  std::string trouble() const { return state_ == State::open ? std::string() : trouble_; }

 private:
  enum class State : std::uint8_t { closed, looking_up, connecting, greeting, open };
  struct Sent {
    CallPtr call;
    std::uint64_t end = 0;         // of its bytes, counted from the beginning of the connection
    bool was_sent_before = false;  // on an earlier connection
    std::int64_t patience = 0;     // silence for longer than this is death,
    std::int64_t left_at = 0;      // from when the last of its bytes was gone
  };

  void connect(std::int64_t now);
  bool has_endpoints(std::int64_t now);
  void connected(std::int64_t now);
  void read(std::int64_t now);
  void take_in(wire::RespValue value);
  void greeted(const wire::RespValue& reply);
  void was_refused(Sent sent);
  void send(std::int64_t now);
  bool send_out(std::int64_t now);
  void note_what_left(std::int64_t now);
  bool take_bytes(std::string_view bytes);
  void write_out(Call& call, std::int64_t now);
  void broke(const std::string& why, std::int64_t now);
  void turned_away(const Error& error);
  void break_off(const std::string& why, std::int64_t now);
  void tell(const ConnectionNews& news) const;
  std::string why_it_is_late() const;
  void disconnect();

  const LineOptions& options_;
  const Tells& tells_;
  State state_ = State::closed;
  int socket_ = -1;
  bool blocked_ = false;       // the system takes no more bytes for now
  bool is_stopping_ = false;   // the coordinator has said so
  bool is_withdrawn_ = false;  // we say nothing more on this connection
  std::size_t address_ = 0;
  std::vector<std::unique_ptr<Lookup>> lookups_;  // under way, of the address with the same number
  std::vector<Endpoint> endpoints_;               // of the address, still to be tried
  unsigned tried_ = 0;                            // addresses without success since something was answered
  std::size_t turned_away_ = 0;                   // times in a row
  std::int64_t retry_at_ = 0;
  std::int64_t connect_until_ = 0;
  std::int64_t heard_at_ = 0;
  std::int64_t moved_at_ = 0;  // when the system last took bytes of those that want to leave
  std::string trouble_ = "not connected yet";

  std::deque<CallPtr> pending_;
  std::deque<Sent> sent_;         // or about to be: their bytes are in output_
  std::vector<CallPtr> refused_;  // by a coordinator that is stopping; before those of sent_
  std::string output_;
  std::unique_ptr<wire::TlsFilter> tls_;  // between these and the socket, if there is TLS
  std::uint64_t given_ = 0;               // bytes in this connection's output so far
  std::uint64_t taken_ = 0;               // of them, by the system
  std::size_t taken_calls_ = 0;           // so many of sent_, as a whole
  std::size_t left_calls_ = 0;            // of those, likewise, also as what TLS makes of them
  std::string input_;
  std::size_t greetings_missing_ = 0;
  std::unique_ptr<wire::RespValueParser> parser_;
  std::minstd_rand dice_;
};

// For a call that was sent and will not be answered.
Error unanswered(const Call& call, const std::string& why);
// For a call whose deadline has passed; `trouble` is that of its line.
Error out_of_time(const Call& call, const std::string& trouble);

}  // namespace baton::client
