// What has to be true of the process under test after a crash, kept outside of it: built from the lines it
// said before it was killed, and held against what the next one recovers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace baton::crash {

struct Tally {
  std::uint64_t acks = 0;
  std::uint64_t completions = 0;
  std::uint64_t snapshots = 0;
  std::uint64_t refused = 0;
  std::uint64_t unknown = 0;  // tasks and outcomes that are there although nobody was told
  std::uint64_t lost = 0;
  std::uint64_t phantom = 0;
  std::uint64_t doubly_valid = 0;
  std::vector<std::string> complaints;  // the first few, in words
};

class Expectation {
 public:
  explicit Expectation(Tally& tally) : tally_(tally) {}

  // A line as in vocabulary.h. True if it was the last one of the report at the start.
  bool take(const std::string& line);
  // The process is gone, and all its lines were taken.
  void end_round();

 private:
  using Words = std::vector<std::string>;
  struct Hold {
    std::string lease;  // its name in full
    std::int64_t answered = 0;
    std::int64_t deadline = 0;    // as the worker believes
    bool may_have_ended = false;  // the worker was about to give it up
  };
  struct Task {
    std::string key;  // empty while only its id is known
    std::string queue;
    bool acked = false;
    std::map<std::pair<std::uint64_t, std::uint64_t>, Hold> holds;  // by (epoch, lsn)
    std::set<std::string> completing;                               // leases
    std::string completed;                                          // the lease, once acknowledged
    bool failing = false;
    bool failed = false;
    bool cancelling = false;
    bool cancelled = false;
    bool gone = false;  // was purged
  };
  struct Recovered {
    std::string id, key, queue, state, payload, note, lease, old;
  };

  void take_ack(const Words& words);
  void take_submitted(const Words& words, bool is_requeue);
  void take_settled(const Words& words);
  void compare(std::int64_t now);
  void compare_task(const std::string& id, Task& task, std::int64_t now);
  void compare_recovered(const Recovered& found);
  void check_key(const Recovered& found);
  void check_holds(const std::string& id, const Task& task);
  std::string origin(const std::string& key) const;  // whose payload a task with this key has
  void lose(const std::string& what);
  void invent(const std::string& what);
  void complain(std::uint64_t& counter, const char* kind, const std::string& what);

  Tally& tally_;
  std::map<std::string, Task> tasks_;               // by id
  std::map<std::string, std::string> ids_;          // by key
  std::map<std::string, std::string> requeued_;     // key to the key of the old one
  std::map<std::string, std::uint64_t> attempted_;  // submissions by key without its number
  std::set<std::string> refused_;                   // keys
  std::set<std::string> cancelling_;                // keys
  std::set<bool> paused_ = {false};                 // what may be true now
  bool purging_ = false;
  std::map<std::string, Recovered> recovered_;  // the report that is coming in
  bool recovered_paused_ = false;
};

}  // namespace baton::crash
