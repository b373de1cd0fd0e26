// One connection that speaks the Redis protocol: finds commands in what comes in, begins them in order, and
// puts their replies in the same order into what goes out.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "server/desk.h"
#include "server/redis_command.h"
#include "server/session.h"
#include "server/verb.h"
#include "wire/resp.h"

namespace baton::server {

class RespSession final : public Session, private Finisher {
 public:
  // `changed` is called when a reply has been added to the output outside of receive() and resume().
  RespSession(Desk& desk, const Access& access, std::function<void()> changed)
      : desk_(desk),
        access_(access),
        caller_{.id = ++desk.counters.sessions, .principal = access.everyone()},
        parser_(desk.limits.command),
        changed_(std::move(changed)),
        halves_(desk.counters.half_bytes) {}
  ~RespSession() override;
  RespSession(const RespSession&) = delete;
  RespSession& operator=(const RespSession&) = delete;

  void receive(std::string_view bytes) override;
  void resume() override;
  bool wants_more() const override;
  bool is_closing() const override { return closing_; }
  bool is_idle() const override { return slots_.empty() && executing_.empty(); }
  bool is_waiting() const override { return blocking_ != nullptr && blocking_->is_blocking(); }
  // Also within a transaction of which nothing more is read.
  bool is_halfway() const override { return may_begin() && (!input_.empty() || !wants_more()); }
  void certified(std::string_view name) override;
  bool is_held_back() const override { return may_begin() && !wants_more(); }
  std::size_t half_bytes() const override;
  void access_changed() override;
  bool is_stranger() const override { return !caller_.principal; }
  void give_up() override;
  void give_back_room(std::size_t kept_bytes) override {
    parser_.give_back_room(kept_bytes);
    arguments_.give_back_room(kept_bytes);
  }
  std::size_t held_bytes() const override { return held_bytes_; }

 private:
  // A reply that is due: an operation's, or text that waits for those before it.
  struct Slot {
    Operation* operation = nullptr;
    int version = 2;  // of the protocol, when it was asked for
    std::size_t weight = 1;
    std::string text;
  };

  bool may_begin() const;
  void finished(Operation& operation) override;
  bool wants_news() const override { return true; }
  void lost(const HeldLease& lease) override;
  std::vector<HeldLease> take_lost() override { return std::exchange(untold_, {}); }
  std::size_t run_commands(std::string_view input);
  void run(std::span<const std::string_view> words);
  std::unique_ptr<Operation> prepare(const Verb& verb, std::span<const std::string_view> words,
                                     std::string& text);
  const RedisCommand* find_own(std::span<const std::string_view> words, std::string& text) const;
  void run_request(const Verb& verb, MakeRequest& make, std::span<const std::string_view> words);
  void end_gathering();
  void begin(std::unique_ptr<Operation> operation);
  bool reads(const Verb& verb, std::span<const std::string_view> words, wire::RespWriter& reply);
  bool complained(wire::RespWriter& reply) const;
  void keep(std::span<const std::string_view> words, bool is_good, std::string& text);
  void execute();
  void run_next_of_exec();
  bool may(const Verb& verb, wire::RespWriter& reply) const;
  void refuse(wire::RespWriter& reply, std::string_view code, std::string_view message) const;
  void hang_up_on_a_browser();
  void put(std::string text);
  void add(Slot slot);

  Desk& desk_;
  const Access& access_;
  Caller caller_;
  wire::RespParser parser_;
  const std::function<void()> changed_;
  std::string input_;  // not begun yet
  Part halves_;        // of all that has come in part
  std::deque<Slot> slots_;
  // Of the last slot, if that gathers replies which are written already and wait for the disk.
  std::unique_ptr<Operation> gathering_;
  std::size_t under_way_ = 0;      // weight of them all
  std::size_t held_bytes_ = 0;     // of their texts
  std::vector<HeldLease> untold_;  // leases, of which the next reply that can will tell
  Arguments arguments_;
  const Operation* blocking_ = nullptr;             // the last one under way, if nothing is begun behind it
  Permission waits_for_ = Permission::query;        // what it needed
  bool running_ = false;                            // inside run_commands()
  bool rests_ = false;                              // until one is answered: it has done enough at once
  std::deque<std::vector<std::string>> executing_;  // what MULTI gathered and EXEC has not begun yet
  std::size_t executing_bytes_ = 0;                 // of all that it gathered
  bool is_of_exec_ = false;                         // what runs now, or ran last, is
  std::string late_;                                // pushes that wait for the end of EXEC's array
  bool closing_ = false;
};

}  // namespace baton::server
