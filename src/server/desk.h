// Where operations turn to: it passes requests to the authority, has bytes read off the loop, and wakes those
// who wait for something to happen. All of it on the server's one thread.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/authority.h"
#include "server/audit.h"
#include "server/blob_shelf.h"
#include "server/counters.h"
#include "server/crowd.h"
#include "server/event_feed.h"
#include "server/groups.h"
#include "server/lease_news.h"
#include "server/operation.h"
#include "server/queue_counts.h"
#include "server/reader.h"
#include "server/submission_gate.h"
#include "server/syncer.h"
#include "server/waiters.h"

namespace baton::server {

class Desk {
 public:
  Desk(engine::Authority& authority, Reader& reader, const ServerLimits& given = {})
      : limits(given),
        queue_counts(authority.engine().state()),
        events(authority.engine().state()),
        groups(authority.epoch()),
        authority_(authority),
        reader_(reader),
        news_(authority.engine().state()),
        gate_(given) {
    counters.since = now();
  }

  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  const ServerLimits limits;
  Counters counters;
  QueueCounts queue_counts;
  Crowd addresses;   // of connections
  Crowd principals;  // of connections
  EventFeed events;
  Groups groups;
  std::uint16_t http_port = 0;  // 0: there is none

  // How much one connection may leave unread before no more of its commands are begun.
  std::size_t output_bytes_max() const {
    constexpr std::size_t kLittle = 16 << 10;
    return counters.unsent_bytes < limits.unsent_bytes_max ? limits.output_bytes_max
                                                           : std::min(kLittle, limits.output_bytes_max);
  }

  // So much is being read for replies, or waits for its readers, that each connection may have but one
  // command under way.
  bool is_crowded() const {
    return counters.unsent_bytes + counters.fetched_bytes >= limits.unsent_bytes_max;
  }
  // So much that no questions are looked into any more whose answers may be large. Who does not read is
  // closed, and then there is room again.
  bool is_flooded() const {
    return (counters.unsent_bytes + counters.fetched_bytes) / 4 >= limits.unsent_bytes_max;
  }
  static Error flooded();  // for whoever wants something large then
  // So many stand in line that whoever has one there asks nothing more. Whoever completes or renews is not
  // kept by that.
  static constexpr std::size_t kQuestionsMax = 16'384;
  bool has_many_questions() const { return questions_ >= kQuestionsMax; }

  // So much has come in part that no more is read of what is large already, until a quarter of that is free.
  static constexpr std::size_t kSmall = 64 << 10;
  bool is_full_of_halves();

  // Lanes that are looked at for one connection, and for one LEASE, before others have their turn: the loop
  // does nothing else meanwhile.
  static constexpr std::uint64_t kLanesAtOnce = 100'000;

  // Takes an operation in; `finisher` is told when it is finished, perhaps at once, and owns it then.
  void accept(std::unique_ptr<Operation> operation, Finisher& finisher);
  // Writes down that an operator wants this done, if anybody wants to know. It is not to be accepted if that
  // fails, and is not begun before the line is on disk.
  void audit_to(Audit& audit, Syncer& syncer) { audit_ = &audit, syncer_ = &syncer; }
  Status audit(Operation& operation, const AuditedAction& action);
  // Bytes that are too many for the log.
  void keep_blobs_on(BlobShelf& shelf) { blobs_ = &shelf; }
  BlobShelf* blobs() const { return blobs_; }
  // The session goes.
  void forget(Finisher& finisher) { news_.forget(finisher); }
  // The finisher goes. An operation under way goes when it is finished.
  void abandon(Operation& operation);

  // What comes of it, if it can be decided at once. Nobody may hear of it before it is durable.
  const engine::Answer* decide(core::Request& request);

  // For operations. Each is followed by one call back, perhaps at once.
  // The request is used up. What was decided, if that was at once: it is not durable yet, and there until
  // something else is asked.
  const engine::Answer* ask(Operation& operation, std::size_t index, core::Request& request);
  // Until all that was decided so far is durable. There is no call back but the end.
  void await_disk(Operation& operation);
  void look(Operation& operation);
  void fetch(Operation& operation, std::size_t index, const core::BlobRef& blob);
  // Until a task may have come to one of the queues that was not there when it looked.
  struct TaskWait {
    std::string_view ns;
    const std::vector<std::string>& queues;
    std::string_view capabilities = {};  // it has
    bool at_capacity = false;            // until a lease has ended: while it holds so many, no task is for it
    core::Lsn looked_at = 0;             // the last entry then
    Instant deadline;
  };
  void wait_for_task(Operation& operation, const TaskWait& wait);
  // A worker has said how many tasks it can hold.
  void capacity_changed(std::string_view ns);
  void wait_for_end(Operation& operation, core::Lsn task, Instant deadline);
  // Until there may be work of streams of the instance's service that was not there when it looked.
  struct Looked {
    Instant at;         // or before
    core::Lsn lsn = 0;  // the last entry then
  };
  void wait_for_stream(Operation& operation, std::string_view ns, stream::InstanceId instance,
                       const Looked& looked, Instant deadline);  // who is not registered does not wait
  // Until the ranks of the group have met, unless it is refused.
  Status arrive(Operation& operation, const Groups::Name& name, const group::Seat& seat,
                group::Arrival arrival);
  // Until `wait` is over, or the generation is.
  Status watch(Operation& operation, const Groups::Name& name, const group::Seat& seat,
               std::optional<std::string_view> doing, Duration wait);
  // Whoever waits for this operation has the lease now, and hears if it is lost.
  void gave(Operation& operation, const HeldLease& held);
  // What he has not been told of yet.
  std::vector<HeldLease> take_lost(Operation& operation);
  // For the operator.
  void note(const std::string& text) const { authority_.note(text); }
  // An answer that nobody waits for.
  void ask(core::Request request);

  // An entry was recorded.
  void recorded(const core::Event& event, const core::Stamp& stamp);
  // Wakes whoever is to be woken. To be called after every turn of the authority.
  void tick();
  Duration wait() const;  // until the next one, if nothing happens
  // Nobody waits any longer: each is answered as if his time were up.
  void stop();

  std::string queue_of(core::TaskId task) const;  // empty if it is gone
  // Where these lie now; nowhere, if it is gone.
  core::BlobRef payload_of(core::TaskId task) const;
  core::BlobRef body_of(std::uint64_t message) const;  // by its number
  // No id at all, if there is no such task.
  core::TaskId find(std::string_view ns, const core::TaskRef& task) const;
  bool is_there(core::TaskId task) const;
  Instant now() const { return authority_.engine().now(); }
  bool is_stopping() const { return stopping_; }
  const engine::Authority& authority() const { return authority_; }

 private:
  void audited(const Operation& operation, const engine::Answer& answer);
  void settle(Operation& operation);  // one call back less is outstanding
  void tell(std::vector<Groups::Answered> answers);
  void task_came(core::Lsn task);
  void came_to(core::Slot queue);
  void lease_ended(core::Lsn task);
  void work_came(const core::Event& event, const core::Stamp& stamp);

  engine::Authority& authority_;
  Reader& reader_;
  Audit* audit_ = nullptr;
  Syncer* syncer_ = nullptr;
  BlobShelf* blobs_ = nullptr;
  std::size_t questions_ = 0;        // that were asked and are not answered yet
  bool is_full_of_halves_ = false;   // when that was last looked at
  std::vector<Operation*> unbegun_;  // their lines are not on disk yet
  Waiters waiters_;
  LeaseNews news_;
  SubmissionGate gate_;
  bool stopping_ = false;
  core::Lsn newest_work_ = 0;  // the last entry that may have brought some to a stream
  core::Lsn newest_end_ = 0;   // the last that ended a lease
};

}  // namespace baton::server
