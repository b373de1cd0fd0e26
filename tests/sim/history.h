// The invariants of research, section 6.4, over a history of entries: what may follow what. It knows nothing
// of the core's state and little of its rules; the reference model knows those. A history that breaks one
// throws a Violation with the invariant's number.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/apply.h"
#include "core/event.h"

namespace baton::sim {

using core::Lsn;

struct SeenLease {
  Lsn task = 0;
  core::Epoch epoch = 0;
  std::string worker;
  Instant granted_at;
  Instant expiry;
  bool over = false;
  core::Ended how = core::Ended::expired;  // if it is over
  Lsn ended_by = 0;                        // the entry
  std::uint32_t told = 0;                  // TaskCancelled entries
};

struct SeenTask {
  core::TaskId id;
  std::string ns, queue, key;
  std::uint64_t payload_hash = 0;
  core::TaskState state = core::TaskState::waiting;
  bool purged = false;
  Lsn lease = 0;  // the current one
  Lsn newest_lease = 0;
  std::uint32_t grants = 0;
  std::uint32_t failures = 0;
  Instant free_from;  // no lease may begin before
};

class History {
 public:
  void entry(const core::Event& event, const core::Stamp& at);

  const std::map<Lsn, SeenTask>& tasks() const { return tasks_; }
  const std::map<Lsn, SeenLease>& leases() const { return leases_; }
  const SeenTask* task(Lsn lsn) const;
  const SeenLease* lease(Lsn lsn) const;
  Lsn last() const { return last_; }

 private:
  void happened(const core::TaskCreated& event, const core::Stamp& at);
  void happened(const core::LeaseGranted& event, const core::Stamp& at);
  void happened(const core::LeaseExtended& event, const core::Stamp& at);
  void happened(const core::LeasesExtended& event, const core::Stamp& at);
  void happened(const core::LeaseExpired& event, const core::Stamp& at);
  void happened(const core::TaskCompleted& event, const core::Stamp& at);
  void happened(const core::TaskCancelled& event, const core::Stamp& at);
  void happened(const core::TaskFailed& event, const core::Stamp& at);
  void happened(const core::TaskDead& event, const core::Stamp& at);
  void happened(const core::TasksPurged& event, const core::Stamp& at);
  template <class Other>
  void happened(const Other&, const core::Stamp&) {}

  SeenTask& known(Lsn task);
  SeenTask& open(Lsn task);                                           // not final
  SeenLease& held(SeenTask& task, Lsn lease, const core::Stamp& at);  // current and not expired
  void end_lease(SeenTask& task, core::Ended how, const core::Stamp& at);

  std::map<Lsn, SeenTask> tasks_;  // those purged too
  std::map<Lsn, SeenLease> leases_;
  std::map<std::pair<std::string, std::string>, Lsn> keys_;  // (namespace, key) in use
  Lsn last_ = 0;
  core::Epoch epoch_ = 0;
  Instant time_;
};

}  // namespace baton::sim
