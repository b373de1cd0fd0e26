// One connection that speaks the Redis protocol: finds commands in what comes in, begins them in order, and
// puts their replies in the same order into what goes out. Bytes in, bytes out; the socket is another's.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "server/desk.h"
#include "server/verb.h"
#include "wire/resp.h"

namespace baton::server {

class RespSession final : public Finisher {
 public:
  // `changed` is called when a reply has been added to the output outside of receive() and resume().
  RespSession(Desk& desk, const wire::RespLimits& limits, std::function<void()> changed)
      : desk_(desk), parser_(limits), changed_(std::move(changed)) {}
  ~RespSession();
  RespSession(const RespSession&) = delete;
  RespSession& operator=(const RespSession&) = delete;

  void receive(std::string_view bytes);
  void resume() { run_commands(); }  // there may be room for more commands now
  std::string& output() { return output_; }
  // Nothing more will come out than what is in output() and the replies to what is under way.
  bool is_closing() const { return closing_; }
  bool is_idle() const { return slots_.empty(); }
  // False while it has enough to do; receive() again only when it is true.
  bool wants_more() const;

  void finished(Operation& operation) override;

 private:
  // A reply that is due: an operation's, or text that waits for those before it.
  struct Slot {
    Operation* operation = nullptr;
    std::string text;
  };

  void run_commands();
  void run(const std::vector<std::string_view>& words);
  bool run_own(const std::vector<std::string_view>& words, std::string& text);
  void hello(const std::vector<std::string_view>& words, std::string& text);
  void put(std::string text);

  Desk& desk_;
  wire::RespParser parser_;
  const std::function<void()> changed_;
  std::string input_;
  std::size_t begun_ = 0;  // up to here the input is done with
  std::string output_;
  std::deque<Slot> slots_;
  Arguments arguments_;
  std::string ns_ = "default";
  int version_ = 2;
  bool running_ = false;
  bool blocked_ = false;  // a blocking operation is under way
  bool closing_ = false;
};

}  // namespace baton::server
