// One run of a scenario: a coordinator, its disk and clocks, clients, workers and the network between them,
// stepped by one deterministic scheduler. First chaos, then the faults end and everything has to come right.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/sim/calls.h"
#include "tests/sim/node.h"
#include "tests/sim/stream_instance.h"
#include "tests/sim/violation.h"
#include "tests/sim/worker.h"

namespace baton::sim {

// A power cut that waits for a disk operation waits no longer than this.
inline constexpr std::uint64_t kCutWithinSteps = 300;

struct Run {
  std::optional<Violation> violation;
  std::uint64_t hash = 0;
  std::uint64_t steps = 0;
  std::uint64_t crashes = 0;
  std::uint64_t entries = 0;
  std::int64_t simulated_ms = 0;
  bool refused = false;  // a lying disk left a log that cannot be trusted, and it was not
  Faults faults;
  Coverage coverage;
  std::vector<std::string> lines;  // if they were wanted
};

Run run(const Scenario& scenario, bool lines = false);

class World {
 public:
  World(const Scenario& scenario, bool lines);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void run();
  Run result() &&;

 private:
  struct Told {  // a lease somebody was told about
    core::TaskId task;
    core::LeaseId lease;
  };

  void step();
  void perform_next();
  void perform(const Appointment& what);
  void interleave();  // others run while the housekeeper is between two disk operations
  void failed();      // the log has failed
  void restart();
  void crashed();  // the process has ended; the machine stays
  void cut_power(std::uint64_t percent, std::uint64_t salt);
  void deliver(std::uint64_t call, std::uint64_t tried, engine::Answer answer);
  void answer_arrives(std::uint64_t number);
  void say(std::string text);

  // items.cc
  void execute(const Item& item);
  void strike(const Item& item);
  void submit(const Item& item);
  void speak_of_a_task(const Item& item);
  void probe(const Item& item);
  void rot(const Item& item);
  void jam_disk(const Item& item);

  // liveness.cc
  void heal();
  void resume_queues();
  void converge();
  bool all_is_done() const;
  void check_liveness();
  void check_end();

  const Scenario& scenario_;
  Trace trace_;
  Faults faults_;
  Coverage coverage_;
  SimDisk disk_;
  SimClock clock_;
  Agenda agenda_;
  Witness witness_;
  Promises promises_;
  Calls calls_;
  Node node_;
  std::deque<Worker> workers_;
  std::deque<StreamInstance> instances_;

  std::uint64_t steps_ = 0;
  bool housekeeping_ = false;  // the housekeeper is on the stack
  bool interleaving_ = false;
  bool ended_ = false;  // the process ended while it was
  std::size_t next_item_ = 0;
  std::uint64_t crashes_ = 0;
  bool stopped_ = false;  // the directory was closed cleanly and nobody has it open
  bool refused_ = false;
  struct Cut {
    std::uint64_t operation, percent, salt;
    std::uint64_t step;  // at the latest
  };
  std::optional<Cut> cut_;             // the power goes after this disk operation
  std::optional<Item> next_recovery_;  // a cut in the next recovery
  std::vector<core::TaskId> tasks_;    // somebody was told about
  std::vector<Told> leases_;
  std::uint64_t newest_arrival_ = 0;
  std::int64_t healed_at_ = -1;
  std::int64_t resumed_at_ = 0;
  Instant healed_time_;  // the coordinator's, when it was first seen well
};

}  // namespace baton::sim
