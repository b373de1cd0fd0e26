// What is going to happen when, in simulated milliseconds. Of two things at the same instant, the one that
// was planned first comes first.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

namespace baton::sim {

enum class Due : std::uint8_t {
  arrival,       // a: call, b: try
  answer,        // a: number of the answer on its way
  timeout,       // a: call, b: try
  worker,        // a: worker, b: its generation
  instance,      // a: instance, b: its generation
  turn,          // a: incarnation of the coordinator, b: number of the turn
  flush,         // a: incarnation
  prepare,       // a: incarnation
  housekeeping,  // a: incarnation
  clean_up,      // a: incarnation
  restart,       // a: incarnation
};

struct Appointment {
  std::int64_t at = 0;
  std::uint64_t number = 0;
  Due what = Due::turn;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
};

class Agenda {
 public:
  void plan(std::int64_t at, Due what, std::uint64_t a, std::uint64_t b = 0) {
    queue_.push({at, ++planned_, what, a, b});
  }
  bool empty() const { return queue_.empty(); }
  const Appointment& peek() const { return queue_.top(); }
  Appointment next() {
    const Appointment first = queue_.top();
    queue_.pop();
    return first;
  }

 private:
  struct Later {
    bool operator()(const Appointment& a, const Appointment& b) const {
      return a.at != b.at ? a.at > b.at : a.number > b.number;
    }
  };
  std::priority_queue<Appointment, std::vector<Appointment>, Later> queue_;
  std::uint64_t planned_ = 0;
};

}  // namespace baton::sim
