// Where calls come together: a thread that owns the lines. Calls that are answered at once share a line; one
// that waits on purpose has a line to itself, since replies come in order and it would hold up the others.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "client/line.h"

namespace baton::client {

struct ExchangeOptions {
  LineOptions line;
  std::size_t calls_max = 0;
  std::size_t bytes_max = 0;
  std::size_t waiting_lines_max = 0;
};

class Exchange {
 public:
  Exchange(ExchangeOptions options, std::function<void(const wire::RespValue&)> pushed);
  ~Exchange();  // every call ends
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Waits while too many are under way, until the call's deadline; not on the exchange's own thread.
  void start(CallPtr call);
  void look_at_stops();  // the token of a call was triggered
  bool is_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

 private:
  struct Waiting {  // a line for calls that wait on purpose, and the one it has
    std::unique_ptr<Line> line;
    Call* call = nullptr;
  };

  void run();
  bool take_in();  // false: it is time to end
  void place(CallPtr call);
  void place_waiting();
  void expire(std::int64_t now);
  void hurry(Call& call, Line* line, std::int64_t now);
  void settle(Call& call, Result<wire::RespValue> reply);
  void await();
  void advance(std::int64_t now);
  void wake();
  bool is_full() const { return calls_ >= options_.calls_max || bytes_ >= options_.bytes_max; }

  const ExchangeOptions options_;
  const Line::Tells tells_;
  const int wakes_;  // an eventfd

  std::mutex mutex_;
  std::condition_variable room_;
  std::vector<CallPtr> inbox_;
  std::size_t calls_ = 0;  // under way
  std::size_t bytes_ = 0;
  bool awake_ = true;
  bool someone_stopped_ = false;  // since calls were last taken in
  bool stops_ = false;

  // The thread's own.
  Line shared_;
  std::vector<Waiting> waiting_;
  std::deque<CallPtr> unplaced_;  // for a line of their own, and there is none
  std::multimap<std::int64_t, Call*> deadlines_;
  std::size_t settled_ = 0;  // since the counts were last brought up to date
  std::size_t settled_bytes_ = 0;
  struct Happened {
    bool readable = false;
    bool writable = false;
  };
  std::vector<Happened> happened_;  // for the shared line, then the waiting ones
  std::thread thread_;
};

}  // namespace baton::client
