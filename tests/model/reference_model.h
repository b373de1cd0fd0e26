// The rules of tasks and leases once more, written from the requirements and not from the core: maps, vectors
// and full scans, so that it can be seen to be right. Tests run it beside the core and compare, or feed it a
// log and ask whether every entry was allowed. It is meant for some tens of tasks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/apply.h"
#include "core/decision.h"
#include "core/request.h"
#include "core/state.h"
#include "core/worker/worker_registry.h"

namespace baton::model {

using core::Lsn;

struct Hold {
  Lsn lease = 0;
  core::Epoch epoch = 0;
  std::string worker;
  Instant granted_at;
  Instant expiry;
};

struct Past {
  Lsn lease = 0;  // 0: nobody held the task when it ended
  core::Epoch epoch = 0;
  core::Ended how = core::Ended::expired;
  bool told = false;
  Instant retry_at;
  core::BlobRef note;
};

struct ModelTask {
  core::TaskId id;
  std::string ns, queue, key;
  std::string capabilities;
  std::vector<std::string> needs;
  std::uint8_t priority = 0;
  Duration delay;
  core::RetryPolicy retry;
  std::uint32_t max_attempts = 0;
  Duration max_hold;
  core::TaskId retry_of;
  core::BlobRef payload;
  Instant created_at;

  core::TaskState state = core::TaskState::waiting;
  core::DeadReason why = core::DeadReason::none;
  Instant since;
  Lsn place = 0;
  std::uint32_t attempt = 0;
  std::uint32_t failures = 0;
  std::optional<Hold> hold;
  std::vector<Past> pasts;  // newest first

  bool is_doomed() const { return state == core::TaskState::waiting && attempt >= max_attempts; }
};

// What a request has to come to. The event and the reply borrow from the request and the model.
struct Outcome {
  std::optional<core::Event> event;
  std::optional<core::Reply> reply;  // with or without an event
  std::optional<Errc> refusal;
};

// The first thing in which a decision is not what was expected; nothing if it is. The hash of what a key
// stands for is the core's own business and is not compared.
std::optional<std::string> difference(const Outcome& expected, const core::Decision& actual);
std::optional<std::string> difference(const std::optional<core::Event>& expected,
                                      const std::optional<core::Event>& actual);

class ReferenceModel {
 public:
  // What the request has to come to. What is due for its task was recorded before.
  Outcome expected(const core::Request& request, const core::WorkerRegistry& workers,
                   const core::Moment& at) const;
  // What time has to bring about next, in all and for the task a request speaks of.
  std::optional<core::Event> expected_due(Instant now) const;
  std::optional<core::Event> expected_due_before(const core::Request& request, Instant now) const;
  std::optional<core::TasksPurged> expected_purge(std::string_view ns, std::string_view queue,
                                                  const core::Moment& at) const;

  // Makes the entry true. What it returns is why the entry should not be there; the model is then no longer
  // of use.
  [[nodiscard]] std::optional<std::string> observe(const core::Event& event, const core::Stamp& stamp);

  // The first difference between the model and the core's state: everything, one task, or what this event
  // speaks of.
  std::optional<std::string> compare(const core::State& state) const;
  std::optional<std::string> compare_task(const core::State& state, Lsn task) const;
  std::optional<std::string> compare_touched(const core::State& state, const core::Event& event,
                                             const core::Stamp& stamp) const;

  const std::map<Lsn, ModelTask>& tasks() const { return tasks_; }
  const ModelTask* find(std::string_view ns, const core::TaskRef& ref) const;
  bool is_paused(std::string_view ns, std::string_view queue) const;
  // Finished tasks of a queue, in the order in which they finished.
  std::vector<const ModelTask*> finished(std::string_view ns, std::string_view queue) const;
  Lsn last() const { return last_; }
  Instant time() const { return time_; }

 private:
  Outcome wanted(const core::SubmitTask& request, const core::Moment& at) const;
  Outcome wanted(const core::LeaseTask& request, const core::WorkerRegistry& workers,
                 const core::Moment& at) const;
  Outcome wanted(const core::ExtendLease& request, const core::Moment& at) const;
  Outcome wanted(const core::ExtendLeases& request, const core::Moment& at) const;
  Outcome wanted(const core::CompleteTask& request, const core::Moment& at) const;
  Outcome wanted(const core::FailTask& request, const core::Moment& at) const;
  Outcome wanted(const core::ReleaseTask& request, const core::Moment& at) const;
  Outcome wanted(const core::CancelTask& request, const core::Moment& at) const;
  Outcome wanted(const core::RequeueTask& request, const core::Moment& at) const;
  Outcome wanted(const core::PauseQueue& request, const core::Moment& at) const;
  Outcome wanted(const core::ResumeQueue& request, const core::Moment& at) const;
  Outcome wanted(const core::PurgeQueue& request, const core::Moment& at) const;
  Outcome wanted(const core::MoveBlob& request, const core::Moment& at) const;
  Outcome extension(std::string_view ns, const core::ExtendLease& request, const core::Moment& at) const;
  std::optional<Errc> no_room(std::string_view ns, std::string_view queue, std::string_view capabilities,
                              std::uint8_t priority, const core::Rules& rules) const;
  const ModelTask* with_key(std::string_view ns, std::string_view key) const;
  bool has_queue(std::string_view ns, std::string_view queue) const;
  bool is_real(const core::LeaseId& lease, const ModelTask& task) const;
  // The past this lease became, if it was the task's and is remembered.
  const Past* past(const core::LeaseId& lease, const ModelTask& task) const;
  bool is_current(const core::LeaseId& lease, const ModelTask& task) const;

  std::string happened(const core::TaskCreated& event, const core::Stamp& at);
  std::string happened(const core::LeaseGranted& event, const core::Stamp& at);
  std::string happened(const core::LeaseExtended& event, const core::Stamp& at);
  std::string happened(const core::LeasesExtended& event, const core::Stamp& at);
  std::string happened(const core::LeaseExpired& event, const core::Stamp& at);
  std::string happened(const core::TaskCompleted& event, const core::Stamp& at);
  std::string happened(const core::TaskCancelled& event, const core::Stamp& at);
  std::string happened(const core::TaskFailed& event, const core::Stamp& at);
  std::string happened(const core::TaskDead& event, const core::Stamp& at);
  std::string happened(const core::TasksPurged& event, const core::Stamp& at);
  std::string happened(const core::QueuePaused& event, const core::Stamp& at);
  std::string happened(const core::QueueResumed& event, const core::Stamp& at);
  std::string happened(const core::BlobMoved& event, const core::Stamp& at);
  std::string happened(const core::EpochStarted& event, const core::Stamp& at);
  std::string happened(const core::StateDigest& event, const core::Stamp& at);
  std::string happened(const core::SnapshotTaken& event, const core::Stamp& at);
  std::string happened(const core::Sealed& event, const core::Stamp& at);
  template <class AboutStreams>
  std::string happened(const AboutStreams&, const core::Stamp&) {
    return {};  // of which the model knows nothing
  }
  ModelTask* task(Lsn lsn);
  std::string not_held(Lsn task, Lsn lease, Instant now) const;

  std::optional<std::string> compare_queues(const core::State& state) const;
  std::optional<std::string> compare_indexes(const core::State& state) const;

  std::map<Lsn, ModelTask> tasks_;
  std::set<std::pair<std::string, std::string>> paused_;
  SecretKey key_;
  Lsn last_ = 0;
  core::Epoch epoch_ = 0;
  Instant time_;
};

}  // namespace baton::model
