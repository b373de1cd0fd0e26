// baton as a library: open a data directory, submit, lease, complete. No server, no other process.
//
//   auto coordinator = baton::Coordinator::open("data");
//   auto task = (*coordinator)->submit({.ns = "default", .queue = "mail", .payload = Blob("hello")});
//
// Every call may come from any thread and returns when its outcome is durable. Reading bytes that are not at
// hand any more happens on the caller's thread, off the loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/decision.h"
#include "core/query.h"
#include "core/request.h"
#include "engine/options.h"

namespace baton {

namespace engine {
class WorkNews;
}

using core::Blob;
using core::CancelTask;
using core::CompleteTask;
using core::ExtendLease;
using core::ExtendLeases;
using core::FailTask;
using core::LeaseId;
using core::LeaseTask;
using core::PauseQueue;
using core::PurgeQueue;
using core::ReleaseTask;
using core::RequeueTask;
using core::ResumeQueue;
using core::SubmitTask;
using core::TaskId;
using core::TaskRef;

// A task in the hands of a worker. `ttl` counts from when the lease was asked for.
struct LeasedTask {
  TaskId task;
  LeaseId lease;
  std::uint32_t attempt = 0;
  Duration ttl;
  Bytes payload;
};

// What an attempt came to: recorded, or the worker had lost its authority.
struct Verdict {
  bool cancelled = false;  // nothing was changed, the result is discarded
  core::Ended outcome = core::Ended::completed;
  Instant retry_at;
};

class Coordinator {
 public:
  static Result<std::unique_ptr<Coordinator>> open(const std::string& directory,
                                                   CoordinatorOptions options = {});
  // Without close() this is a crash as far as the log is concerned, which is safe.
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  Result<core::Submitted> submit(SubmitTask request);
  // Nothing: there is no task for this worker now. A task whose payload cannot be read is an error, and is
  // put off for an hour.
  Result<std::optional<LeasedTask>> lease(LeaseTask request);
  Result<core::Extended> extend(ExtendLease request);
  Result<core::ExtendedMany> extend(ExtendLeases request);
  Result<Verdict> complete(CompleteTask request);
  Result<Verdict> fail(FailTask request);
  Result<Verdict> release(ReleaseTask request);
  Status cancel(CancelTask request);
  Result<core::Submitted> requeue(RequeueTask request);
  Status pause(PauseQueue request);
  Status resume(ResumeQueue request);
  Result<core::Purged> purge(PurgeQueue request);
  Status heartbeat(const std::string& ns, const std::string& worker, std::uint32_t capacity,
                   core::Capabilities capabilities = {});

  Result<core::TaskView> get(const std::string& ns, const TaskRef& task);  // Errc::not_found
  Result<core::TaskPage> list(core::ListTasks query);
  Result<core::QueuePage> queues(core::ListQueues query);
  // The bytes a view or a grant refers to. Errc::corrupt if they are not what was written.
  Result<Bytes> read(const core::BlobRef& blob);
  // Of many, in fewer goes where they lie side by side. Null where something is wrong: `read` says what.
  std::vector<engine::SharedBytes> read_together(const std::vector<core::BlobRef>& blobs);

  // For many requests in flight: `done` is called once on the coordinator's own thread, when the outcome is
  // durable, and must be quick: no blocking call, no close(). It is never called if the coordinator fails or
  // goes.
  void ask(core::Request request, std::function<void(engine::Answer)> done);
  // Any request, and its answer as it is: for what has a face of its own (engine/work_coordinator).
  Result<engine::Answer> answer_to(core::Request request);
  const engine::WorkNews& work_news() const;
  // Runs `look` on the coordinator's thread and returns when all it saw is durable.
  Status inspect(const std::function<void(const core::State&)>& look);

  // Makes a snapshot up to the end of the newest sealed segment, and removes what is no longer needed, as
  // happens by itself every so often. Does nothing if no segment was sealed since the last one.
  Status make_snapshot();
  const RecoverySummary& recovery() const;
  std::uint64_t flushes() const;  // since the start

  // Answers what was asked, records the clean stop, and lets the data directory go. Errc::closed from then
  // on. No other call may be under way, for there is nothing left to answer it.
  Status close();

 private:
  class Loop;
  explicit Coordinator(std::unique_ptr<Loop> loop);
  template <class Reply>
  Result<Reply> call(core::Request request);
  Result<Verdict> verdict(core::Request request);
  Result<Bytes> payload_of(const std::string& ns, const core::Granted& granted);
  Status inspect_engine(const std::function<void(engine::Engine&)>& look);

  std::unique_ptr<Loop> loop_;
};

}  // namespace baton
