// The coordinator as a process that can be killed: the engine, log, housekeeper and coordinator time of
// production, taking the same turns, with the scheduler in place of threads.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "engine/coordinator_time.h"
#include "engine/engine.h"
#include "engine/housekeeper.h"
#include "engine/turns.h"
#include "tests/sim/agenda.h"
#include "tests/sim/coverage.h"
#include "tests/sim/faults.h"
#include "tests/sim/promises.h"
#include "tests/sim/scenario.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_log.h"
#include "tests/sim/trace.h"
#include "tests/sim/witness.h"

namespace baton::sim {

inline constexpr std::int64_t kTickMs = 1000;  // how long it waits at most, as in engine/turns.cc

// What a process runs in, and what survives it.
struct Surroundings {
  const Scenario& scenario;
  SimDisk& disk;
  SimClock& clock;
  Agenda& agenda;
  Trace& trace;
  Faults& faults;
  Coverage& coverage;
  Witness& witness;
  Promises& promises;
};

struct Asked {
  std::uint64_t call = 0;
  std::uint64_t tried = 0;
  const core::Request* request = nullptr;  // the caller's
  std::optional<core::MoveBlob> move;      // the housekeeper's own
  // Filled in when it is decided.
  ExpectedReply expected;
  Instant decided_at;
  std::int64_t handled = 0;  // when that was
};

enum class Start : std::uint8_t {
  running,
  failed,   // the disk failed; another attempt may do better
  refused,  // the log is not trusted
};

class Node {
 public:
  using Deliver = std::function<void(std::uint64_t call, std::uint64_t tried, engine::Answer)>;
  Node(const Surroundings& around, Deliver deliver) : around_(around), deliver_(std::move(deliver)) {}

  Start start();
  const std::string& why_not() const { return why_not_; }
  bool running() const { return engine_ != nullptr; }
  std::uint64_t incarnation() const { return incarnation_; }
  void die();  // everything in memory is gone

  void arrive(std::uint64_t call, std::uint64_t tried, const core::Request& request);
  void heartbeat(std::string_view ns, std::string_view worker, std::uint32_t capacity,
                 const core::Capabilities& capabilities);
  // The events it planned come back through these. False: the log has failed, and the process has to end.
  bool turn(std::uint64_t number);
  bool flush();
  bool prepare();
  void housekeep();
  void clean_up();
  bool stop();  // cleanly

  void stall(std::int64_t ms) { stalled_until_ = std::max(stalled_until_, around_.clock.now + ms); }
  std::int64_t busy_until() const { return std::max(stalled_until_, flush_ends_); }
  void slow_flush(std::int64_t ms) { flush_delay_ = ms; }
  void want_snapshot();

  const engine::Engine& engine() const { return *engine_; }
  // Damage to the batch behind this entry may be taken for a torn write, for nothing stands behind that
  // batch.
  core::Lsn proven() const { return proven_; }
  bool admits() const { return rules_.admit_submissions; }
  std::uint64_t backlog() const { return backlog_.size(); }
  // Every blob that is referenced can be read and is what it was.
  void check_blobs();
  bool reads_fail = false;  // a fault is on: failing to read is no violation

 private:
  void wake(std::int64_t at);
  bool handle(Asked& asked);
  void deliver();
  void plan_flush();
  void plan_prepare();
  Result<Bytes> read(const core::BlobRef& blob);
  bool may_miss_bytes() const { return reads_fail || around_.scenario.mode() == Mode::lying; }
  engine::EngineOptions options();
  log::Options log_options() const;
  std::uint64_t configured(Knob knob) const;

  Surroundings around_;
  Deliver deliver_;
  std::uint64_t incarnation_ = 0;
  std::string why_not_;

  std::unique_ptr<SimLog> log_;
  std::unique_ptr<engine::CoordinatorTime> time_;
  std::unique_ptr<engine::Housekeeper> housekeeper_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::Turns> turns_;
  core::Rules rules_;

  std::deque<Asked> backlog_;
  std::deque<Asked> waiting_;  // decided, the answer not yet out
  std::uint64_t turns_planned_ = 0;
  std::int64_t turn_at_ = 0;
  bool turn_planned_ = false;
  std::int64_t stalled_until_ = 0;
  std::int64_t flush_delay_ = 0;
  std::int64_t flush_ends_ = 0;
  std::int64_t durable_since_ = 0;
  core::Lsn proven_ = 0;                          // survives the process
  bool idle_ = false;                             // nothing has come since the last turn
  bool housekeeping_ = false;                     // planned or under way
  std::optional<engine::SnapshotMade> snapshot_;  // to be recorded
  core::Lsn snapshot_entry_ = 0;                  // its SnapshotTaken, until that is durable
};

}  // namespace baton::sim
