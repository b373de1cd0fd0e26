// Operations that wait: for a task to come to a queue, or for a task to end. In the order in which they came.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/ids.h"
#include "core/prospect.h"

namespace baton::server {

class Operation;

class Waiters {
 public:
  struct Woken {
    Operation* operation;
    bool time_is_up;
  };

  // Until `deadline`. With the capabilities that a task may need, canonical.
  void wait_for_task(Operation& operation, std::string_view ns, const std::vector<std::string>& queues,
                     Instant deadline, std::string_view capabilities = {});
  void wait_for_end(Operation& operation, core::Lsn task, Instant deadline);
  bool forget(Operation& operation);  // whether it waited

  bool anyone_waits() const { return !waiting_.empty(); }
  void task_came(std::string_view ns, std::string_view queue);
  void task_came_to_all(std::string_view prefix);                               // of queues
  void task_comes_at(std::string_view ns, std::string_view queue, Instant at);  // by time alone
  void task_ended(core::Lsn task);

  // Who is to be woken now. They wait no longer. `look` tells for whom a queue has a task, or when.
  using Look = std::function<core::Prospect(std::string_view ns, std::string_view queue)>;
  std::vector<Woken> take(Instant now, const Look& look);
  std::vector<Operation*> take_all();
  Instant next() const;  // when time alone will wake the next one

 private:
  using Id = std::uint64_t;  // in the order of their coming
  struct Line {
    std::string ns;
    std::string queue;
    std::set<Id> ids;
    std::uint64_t came = 0;  // tasks, since it was last looked at
    Id try_up_to = 0;        // who was in line when the last one came
    std::optional<Instant> put_off;
  };
  using Lines = std::map<std::string, Line, std::less<>>;  // by namespace and queue
  struct Waiting {
    Operation* operation = nullptr;
    Instant deadline;
    std::vector<Lines::iterator> lines;
    std::string capabilities;
    core::Lsn task = 0;
  };

  Waiting& add(Operation& operation, Instant deadline);
  void stir(Lines::iterator line, std::uint64_t tasks);
  void put_off(Lines::iterator line, std::optional<Instant> until);
  bool wake_in(Line& line, const core::Prospect& prospect, Instant now, std::vector<Woken>& woken);
  void take(Id id, Instant now, std::vector<Woken>& woken);

  Id last_ = 0;
  std::unordered_map<Id, Waiting> waiting_;
  std::unordered_map<Operation*, Id> ids_;
  std::set<std::pair<Instant, Id>> by_time_;
  Lines lines_;
  std::set<std::string, std::less<>> stirred_;         // names of lines to which something came
  std::set<std::pair<Instant, std::string>> put_off_;  // … which is for later; one for each line
  std::set<std::pair<core::Lsn, Id>> ends_;
  std::vector<Id> ended_;
};

}  // namespace baton::server
