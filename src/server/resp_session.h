// One connection that speaks the Redis protocol: finds commands in what comes in, begins them in order, and
// puts their replies in the same order into what goes out.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "server/desk.h"
#include "server/session.h"
#include "server/verb.h"
#include "wire/resp.h"

namespace baton::server {

class RespSession final : public Session, private Finisher {
 public:
  // `changed` is called when a reply has been added to the output outside of receive() and resume().
  RespSession(Desk& desk, const Access& access, const wire::RespLimits& limits, std::function<void()> changed)
      : desk_(desk),
        access_(access),
        principal_(access.everyone()),
        parser_(limits),
        changed_(std::move(changed)) {}
  ~RespSession() override;
  RespSession(const RespSession&) = delete;
  RespSession& operator=(const RespSession&) = delete;

  void receive(std::string_view bytes) override;
  void resume() override;
  bool wants_more() const override;
  bool is_closing() const override { return closing_; }
  bool is_idle() const override { return slots_.empty(); }
  bool is_waiting() const override { return blocked_; }
  bool is_halfway() const override { return !input_.empty() && wants_more(); }
  void certified(std::string_view name) override {
    if (access_.needs_token()) principal_ = access_.find_certified(name);
  }

 private:
  // A reply that is due: an operation's, or text that waits for those before it.
  struct Slot {
    Operation* operation = nullptr;
    std::string text;
  };

  void finished(Operation& operation) override;
  std::size_t run_commands(std::string_view input);
  void run(const std::vector<std::string_view>& words);
  bool run_own(const std::vector<std::string_view>& words, std::string& text);
  void hello(const std::vector<std::string_view>& words, std::string& text);
  bool authenticate(std::span<const std::string_view> name_and_token, wire::RespWriter& reply);
  bool may(const Verb& verb, wire::RespWriter& reply) const;
  void put(std::string text);

  Desk& desk_;
  const Access& access_;
  PrincipalRef principal_;  // none: it has not said who it is
  wire::RespParser parser_;
  const std::function<void()> changed_;
  std::string input_;  // not begun yet
  std::deque<Slot> slots_;
  Arguments arguments_;
  std::string ns_ = "default";
  int version_ = 2;
  bool running_ = false;  // inside run_commands()
  bool blocked_ = false;  // a blocking operation is under way
  bool closing_ = false;
};

}  // namespace baton::server
