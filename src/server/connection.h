// One socket and the conversation on it. It moves bytes when it is told to and knows when it is over; when a
// socket is ready is another's business.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/time.h"
#include "server/session.h"
#include "wire/tls.h"

namespace baton::server {

class Connection {
 public:
  // `alike` counts the open connections of this kind, `unsent` the bytes that all of them have to send.
  Connection(Descriptor socket, std::unique_ptr<Session> session, std::unique_ptr<wire::TlsFilter> tls,
             Instant now, std::uint64_t& alike, std::uint64_t& unsent);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int socket() const { return socket_.number(); }
  // Hands what has come to the session, after a call of `came`. False if there is nothing more to read.
  bool read(std::span<char> buffer, const std::function<void(std::size_t)>& came);
  // Lets the session go on, and sends what it has to say. False if there may be more at once: then others
  // have their part of the turn first.
  bool write(Instant now);
  // Brings `unsent` up to date, also while the socket takes nothing.
  void count_unsent();
  void hung_up() { hung_up_ = true; }
  void access_changed() { session_->access_changed(); }

  bool has_output() const { return output_left() > 0; }  // the socket took no more
  bool wants_to_read() const { return !ended_ && (session_->wants_more() || has_left()); }
  bool is_over() const;
  // It has been halfway through something for longer than `max`.
  bool is_stuck(Instant now, Duration max);
  // It could not get on, for of all connections too much has come in part.
  bool is_held_back() const { return session_->is_held_back() && !has_output(); }
  std::size_t half_bytes() const { return session_->half_bytes(); }
  Instant got_on() const { return got_on_; }
  // As if it had just got on.
  void begin_anew(Instant now) { got_on_ = now, was_held_back_ = false; }
  // Most of what it needed while it was busy. Whoever is busy still has it again at once.
  void give_back_room();
  // Tells the other side why it is closed, where it can be told.
  void give_up(Instant now);

 private:
  bool shakes_hands() const { return tls_ && !tls_->is_ready(); }
  // It hung up and will never come back to what it waits for, even if it has sent more behind that. Nor is
  // the rest of what it sent worth keeping what there is while memory is short.
  bool has_left() const { return hung_up_ && (session_->is_waiting() || session_->is_held_back()); }
  Status take(std::string_view bytes);
  std::string& filtered_output();
  bool send_output(Instant now);
  std::size_t output_left() const { return (tls_ ? tls_->output() : session_->output()).size() - sent_; }

  Descriptor socket_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<wire::TlsFilter> tls_;  // none: the session's bytes go as they are
  Instant got_on_;                        // when it last did
  std::uint64_t& alike_;
  std::uint64_t& unsent_;
  std::size_t own_unsent_ = 0;  // of them
  std::size_t sent_ = 0;        // of the output
  std::size_t read_ = 0;        // of a long reply, by the other side, since it last got on
  std::size_t came_ = 0;        // of half a command, since it last got on
  std::uint64_t moved_ = 0;     // of a long body, when it was last looked at
  bool was_held_back_ = false;  // when it was last looked at
  bool hung_up_ = false;        // there is an end behind what can be read
  bool ended_ = false;          // the other side will send no more
  bool broken_ = false;         // nor hear anything
};

}  // namespace baton::server
