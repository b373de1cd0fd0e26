// What the instances of a pipeline need of each other, as an interface: whoever has another way to carry it
// than those that come with baton implements this. pipeline/contract.h checks an implementation.
//
//   master:  open_run, enqueued_modules, own_results, enqueue_module, wait_for_result,
//   get_registered_workers, broadcast_cancellation, close_run worker:  register_worker, dequeue_module,
//   publish_result, send_heartbeat, is_cancellation_requested
//
//        enqueue            dequeue              publish
//   (none) ----> waiting ------------> leased ------------> done, with the first result that was accepted
//                   ^                    |
//                   '--------------------'  its lease ends without a heartbeat: attempt + 1, while there is
//                   one left;
//                                           then done, with a failure: worker lost
//
// What waits is done too when the master publishes what became of it: so it withdraws what it has given up.
//
// An implementation is safe to be called from many threads. Every operation takes a stop token; one that is
// stopped returns CLOSED soon, and leaves nothing half done. Whoever waits for something uses no processor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "pipeline/carried.h"
#include "pipeline/graph_parts.h"
#include "pipeline/status.h"
#include "pipeline/steady_time.h"

namespace baton::pipeline {

// Of what masters and workers say to each other: those that differ in it do not work together.
inline constexpr std::uint32_t kProtocol = 1;
inline constexpr Duration kHeartbeat = seconds(10);
inline constexpr Duration kLostAfter = seconds(30);

struct ArtifactRef {
  std::string module;
  std::string name;
  BlobRef blob;
  friend bool operator==(const ArtifactRef&, const ArtifactRef&) = default;
};
BATON_FIELDS(ArtifactRef, module, name, blob)

// What a module came to, for those who need it.
struct DependencyResult {
  std::string module;
  ModuleStatus status = ModuleStatus::succeeded;
  std::string value;            // encoded
  std::optional<BlobRef> blob;  // where the value is, if it is large
  std::optional<ModuleFailure> failure;
  std::string skipped_because;
  friend bool operator==(const DependencyResult&, const DependencyResult&) = default;
};
BATON_FIELDS(DependencyResult, module, status, value, blob, failure, skipped_because)

struct ModuleAssignment {
  std::string module;                              // test[linux]
  std::string result_type;                         // schema of its result; told, never trusted
  std::vector<std::string> required_capabilities;  // canonical
  std::string matrix_target;
  std::uint32_t priority = 0;      // 0 to 9, larger first
  std::uint32_t attempts_max = 2;  // workers that may begin it
  bool always_run = false;
  std::vector<DependencyResult> dependencies;
  std::vector<ArtifactRef> artifacts;  // that it consumes
  friend bool operator==(const ModuleAssignment&, const ModuleAssignment&) = default;
};
BATON_FIELDS(ModuleAssignment, module, result_type, required_capabilities, matrix_target, priority,
             attempts_max, always_run, dependencies, artifacts)

// An assignment under a lease, which heartbeats keep alive.
struct Assigned {
  ModuleAssignment assignment;
  std::uint32_t attempt = 1;
  std::string lease;
  // When the question was put that this answers, by steady_ms(): the lease may have begun any time since, and
  // the answer may have been long on its way.
  std::int64_t asked_at_ms = steady_ms();
};
struct Empty {};  // nothing for this worker now; ask again
struct Closed {   // the run is over; there will be nothing more
  std::string reason;
};
using Dequeued = std::variant<Empty, Assigned, Closed>;

struct SerializedModuleResult {
  std::string module;
  std::uint32_t attempt = 1;
  std::string lease;  // under which it was made; empty: by the master itself
  std::int32_t worker_index = 0;
  ModuleStatus status = ModuleStatus::succeeded;
  std::string value;  // encoded
  std::optional<BlobRef> blob;
  std::optional<ModuleFailure> failure;
  std::string skipped_because;
  std::uint32_t tries = 0;
  Duration took;
  Duration transfer;  // of that, until artifacts and large values had come and gone
  std::vector<ArtifactRef> artifacts;
  std::string log;                  // all that it said, a line after the other; or
  std::optional<BlobRef> log_blob;  // where that is; or, without a place for it, the end
  std::uint64_t log_from = 0;       // the how manieth line of it the first one is
  friend bool operator==(const SerializedModuleResult&, const SerializedModuleResult&) = default;
};
BATON_FIELDS(SerializedModuleResult, module, attempt, lease, worker_index, status, value, blob, failure,
             skipped_because, tries, took, transfer, artifacts, log, log_blob, log_from)

// What became of an assignment that whoever took it cannot read: another worker could not either.
SerializedModuleResult unreadable(const std::string& module, std::uint32_t attempt, std::int32_t worker_index,
                                  const Error& why);

// Some of what a module says, while it runs.
struct Said {
  std::string module;
  std::uint32_t attempt = 1;
  std::uint64_t first = 0;  // the how manieth line of it the first one is
  std::vector<std::string> lines;
  friend bool operator==(const Said&, const Said&) = default;
};
BATON_FIELDS(Said, module, attempt, first, lines)

enum class Accepted : std::uint8_t {
  first,      // it stands from now on
  duplicate,  // it was accepted before, and changed nothing
  stale,      // another attempt has begun, its lease has ended, or another result stands: nothing was changed
};

struct WorkerRegistration {
  std::int32_t index = 0;  // 1 and up; 0 is the master
  std::string session;     // of this process: another one with the same index is refused while it lives
  std::string name;
  std::vector<std::string> capabilities;  // canonical
  std::uint32_t slots = 1;
  std::uint32_t processors = 1;   // so many modules at a time that keep one busy
  std::uint64_t fingerprint = 0;  // of its graph
  GraphParts parts;               // likewise
  std::uint32_t protocol = kProtocol;
  friend bool operator==(const WorkerRegistration&, const WorkerRegistration&) = default;
};
BATON_FIELDS(WorkerRegistration, index, session, name, capabilities, slots, processors, fingerprint, parts,
             protocol)

enum class WorkerStatus : std::uint8_t {
  connected,     // registered, and has not been heard of since
  active,        // has nothing to do
  executing,     // works on current_modules
  disconnected,  // left
  timed_out,     // fell silent
};
std::string_view word(WorkerStatus status);

struct WorkerHeartbeat {
  std::int32_t index = 0;
  std::string session;
  std::vector<std::string> leases;  // to be kept
  std::vector<std::string> current_modules;
  bool leaving = false;  // the last one
};
struct RegisteredWorker {
  WorkerRegistration registration;
  WorkerStatus status = WorkerStatus::connected;
  std::vector<std::string> current_modules;
  Duration silent_for;
};
struct CancellationSignal {
  std::string reason;
  friend bool operator==(const CancellationSignal&, const CancellationSignal&) = default;
};
// Who is the master of the run. Its asking for the workers, again and again, is the sign that it is there.
struct RunOpening {
  std::string session;  // of this process: another master is refused while it lives
  std::string name;     // of the pipeline
  std::uint64_t fingerprint = 0;
  std::string definition;  // of a pipeline from a file: workers need nothing else
  GraphParts parts;
  std::uint32_t protocol = kProtocol;
  std::optional<Duration>
      lease;  // how long one lasts, where that is the same for all; the coordinator's to say
  friend bool operator==(const RunOpening&, const RunOpening&) = default;
};
BATON_FIELDS(RunOpening, session, name, fingerprint, definition, parts, protocol, lease)

// Whether a master with the one may go on with a run that was begun with the other: workers go by what they
// were told first. All is the same but the process and the lease.
bool is_of_same_pipeline(RunOpening one, const RunOpening& other);

// CONFLICT: what the worker has is not what the master has, and in what they differ.
Status admit(const RunOpening& master, const WorkerRegistration& worker);

struct HeartbeatReply {
  std::optional<CancellationSignal> cancelled;
  std::optional<Closed> closed;
  std::vector<std::string> lost;  // leases that are no longer held
  Duration master_silent_for;     // zero too if there was none yet
};

class DistributedCoordinator {
 public:
  virtual ~DistributedCoordinator() = default;

  // The master's. A run that an earlier process opened is gone on with, with all that was enqueued and
  // published, unless that process is still there (LOCKED). CONFLICT: the run is over, or of another
  // pipeline (is_of_same_pipeline).
  virtual Status open_run(const RunOpening& opening, std::stop_token stop) = 0;
  // What was enqueued in this run, by an earlier master too: its results come from here on as if this one had
  // enqueued it, those that were published before included.
  virtual Result<std::vector<std::string>> enqueued_modules(std::stop_token stop) = 0;
  // What masters of this run have published of what they ran themselves.
  virtual Result<std::vector<SerializedModuleResult>> own_results(std::stop_token stop) = 0;
  // An assignment is made once for a module of a run; the same again changes nothing.
  virtual Status enqueue_module(const ModuleAssignment& assignment, std::stop_token stop) = 0;
  // Until there is a result, or it was stopped. One that was published before is there at once.
  virtual Result<SerializedModuleResult> wait_for_result(const std::string& module, std::stop_token stop) = 0;
  virtual Result<std::vector<RegisteredWorker>> get_registered_workers(std::stop_token stop) = 0;
  // For good, and for workers that come later too. The first reason stands.
  virtual Status broadcast_cancellation(const std::string& reason, std::stop_token stop) = 0;
  // The run is over: whoever waits for work hears it.
  virtual Status close_run(const std::string& reason, std::stop_token stop) = 0;

  // The workers'. One whose graph is not the master's is refused here, and when it asks for work (CONFLICT);
  // so is one with the index of another that is still there.
  virtual Status register_worker(const WorkerRegistration& registration, std::stop_token stop) = 0;
  // At most one taker, in the order of priority and then of enqueueing among what the capabilities suffice
  // for. May wait for a while before it answers Empty, or answer so at once.
  virtual Result<Dequeued> dequeue_module(const WorkerRegistration& worker, std::stop_token stop) = 0;
  // The master publishes what it ran itself, and what it withdraws: a module that was enqueued and that
  // nobody has, which nobody gets from then on. If somebody has it, that is stale. So it also notes what it
  // begins, under a name that no module has, for the master that comes after it.
  virtual Result<Accepted> publish_result(const SerializedModuleResult& result, std::stop_token stop) = 0;
  virtual Result<HeartbeatReply> send_heartbeat(const WorkerHeartbeat& heartbeat, std::stop_token stop) = 0;
  virtual Result<std::optional<CancellationSignal>> is_cancellation_requested(std::stop_token stop) = 0;

  // For workers that know no pipeline of their own. NOT_FOUND: there is no such run, or nothing is told of
  // it.
  virtual Result<RunOpening> run_opening(std::stop_token stop);

  // Where artifacts and large values go. Null: nowhere, and results have to be as small as the messages are.
  virtual BlobStore* blobs() { return nullptr; }

  // For whoever watches the run. It may get lost on the way: all of it comes with the result.
  virtual Status say(const std::vector<Said>& said, std::stop_token stop);  // the workers'
  virtual Result<std::vector<Said>> take_said(std::stop_token stop);        // the master's; does not wait

  // What an implementation may do better than one by one.
  virtual Status enqueue_modules(const std::vector<ModuleAssignment>& assignments, std::stop_token stop);
  // The next results of whatever was enqueued, each once; waits until there is one. NOT_FOUND: this way is
  // not offered, and the master waits for each module in a thread of its own.
  virtual Result<std::vector<SerializedModuleResult>> next_results(std::stop_token stop);
};

// Makes one when the run begins: connecting may take a while, or fail.
class DistributedCoordinatorFactory {
 public:
  virtual ~DistributedCoordinatorFactory() = default;
  virtual Result<std::unique_ptr<DistributedCoordinator>> create(std::stop_token stop) = 0;
};

}  // namespace baton::pipeline
