#include "engine/coordinator.h"

#include <fmt/format.h>

#include <utility>

#include "core/names.h"
#include "core/refusal.h"
#include "engine/await.h"
#include "engine/loop.h"

namespace baton {
namespace {

std::unexpected<Error> gone() {
  return failure(Errc::closed,
                 "the coordinator has stopped; whether the request was recorded is for a restart to tell");
}

std::unexpected<Error> not_taken() {
  return failure(Errc::closed, "the coordinator has stopped, and the request was not taken");
}

}  // namespace

Result<std::unique_ptr<Coordinator>> Coordinator::open(const std::string& directory,
                                                       CoordinatorOptions options) {
  auto loop = Loop::open(directory, std::move(options));
  if (!loop) return std::unexpected(loop.error());
  return std::unique_ptr<Coordinator>(new Coordinator(std::move(*loop)));
}

Coordinator::Coordinator(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
Coordinator::~Coordinator() = default;

void Coordinator::ask(core::Request request, std::function<void(engine::Answer)> done) {
  (void)loop_->authority().ask(std::move(request), std::move(done));
}

template <class Reply>
Result<Reply> Coordinator::call(core::Request request) {
  std::optional<engine::Answer> answer;
  bool taken = false;
  engine::await([&](std::shared_ptr<void> ticket) {
    taken = loop_->authority().ask(
        std::move(request),
        [&answer, ticket = std::move(ticket)](engine::Answer given) { answer = std::move(given); });
  });
  if (!taken) return not_taken();
  if (!answer) return gone();
  if constexpr (std::same_as<Reply, engine::Answer>) {
    return std::move(*answer);
  } else {
    if (!answer->reply) return std::unexpected(answer->reply.error());
    return std::get<Reply>(std::move(*answer->reply));
  }
}

Result<engine::Answer> Coordinator::answer_to(core::Request request) {
  return call<engine::Answer>(std::move(request));
}

const engine::WorkNews& Coordinator::work_news() const { return loop_->authority().work_news(); }

Result<core::Submitted> Coordinator::submit(SubmitTask request) {
  return call<core::Submitted>(std::move(request));
}

Result<std::optional<LeasedTask>> Coordinator::lease(LeaseTask request) {
  const std::string ns = request.ns;
  auto answer = call<engine::Answer>(std::move(request));
  if (!answer) return std::unexpected(answer.error());
  if (!answer->reply) return std::unexpected(answer->reply.error());
  const auto* granted = std::get_if<core::Granted>(&*answer->reply);
  if (granted == nullptr) return std::optional<LeasedTask>{};
  LeasedTask leased{granted->task, granted->lease, granted->attempt, granted->ttl, {}};
  if (answer->payload) {
    leased.payload = *answer->payload;
  } else {
    auto bytes = payload_of(ns, *granted);
    if (!bytes) return std::unexpected(bytes.error());
    leased.payload = std::move(*bytes);
  }
  return leased;
}

// Nobody can work on a task without its payload. It is put off, so that it does not use up its attempts one
// lease after another while somebody restores the directory.
Result<Bytes> Coordinator::payload_of(const std::string& ns, const core::Granted& granted) {
  auto bytes = read(granted.payload);
  if (!bytes && bytes.error().code == Errc::not_found) {
    // Copied forward after the grant, and the old segment has gone.
    if (auto view = get(ns, granted.task)) bytes = read(view->payload);
  }
  if (bytes || bytes.error().code == Errc::closed) return bytes;
  const auto released =
      release({.ns = ns, .task = granted.task, .lease = granted.lease, .delay = core::kUnreadableDelay});
  const std::string message = fmt::format("task {}: its payload cannot be read: {}",
                                          core::to_text(granted.task), bytes.error().message);
  loop_->authority().note(message + (released ? "; nobody gets the task for an hour" : ""));
  return failure(bytes.error().code, message);
}

Result<core::Extended> Coordinator::extend(ExtendLease request) {
  return call<core::Extended>(std::move(request));
}
Result<core::ExtendedMany> Coordinator::extend(ExtendLeases request) {
  return call<core::ExtendedMany>(std::move(request));
}

Result<Verdict> Coordinator::verdict(core::Request request) {
  auto answer = call<engine::Answer>(std::move(request));
  if (!answer) return std::unexpected(answer.error());
  if (!answer->reply) return std::unexpected(answer->reply.error());
  if (const auto* committed = std::get_if<core::Committed>(&*answer->reply)) {
    return Verdict{.outcome = committed->outcome, .retry_at = committed->retry_at};
  }
  return Verdict{.cancelled = true};
}

Result<Verdict> Coordinator::complete(CompleteTask request) { return verdict(std::move(request)); }
Result<Verdict> Coordinator::fail(FailTask request) { return verdict(std::move(request)); }
Result<Verdict> Coordinator::release(ReleaseTask request) { return verdict(std::move(request)); }

Result<core::Submitted> Coordinator::requeue(RequeueTask request) {
  return call<core::Submitted>(std::move(request));
}
Result<core::Purged> Coordinator::purge(PurgeQueue request) { return call<core::Purged>(std::move(request)); }

Status Coordinator::cancel(CancelTask request) {
  auto done = call<core::Accepted>(std::move(request));
  return done ? Status{} : Status(std::unexpected(done.error()));
}
Status Coordinator::pause(PauseQueue request) {
  auto done = call<core::Accepted>(std::move(request));
  return done ? Status{} : Status(std::unexpected(done.error()));
}
Status Coordinator::resume(ResumeQueue request) {
  auto done = call<core::Accepted>(std::move(request));
  return done ? Status{} : Status(std::unexpected(done.error()));
}

Status Coordinator::heartbeat(const std::string& ns, const std::string& worker, std::uint32_t capacity,
                              core::Capabilities capabilities) {
  if (!core::is_name(ns) || !core::is_name(worker)) {
    return failure(Errc::invalid_request, "namespace and worker must be 1 to 128 graphic ASCII characters");
  }
  return inspect_engine(
      [&](engine::Engine& engine) { engine.heartbeat(ns, worker, capacity, capabilities); });
}

Status Coordinator::inspect(const std::function<void(const core::State&)>& look) {
  return inspect_engine([&](engine::Engine& engine) { look(engine.state()); });
}

Status Coordinator::inspect_engine(const std::function<void(engine::Engine&)>& look) {
  bool looked = false;
  engine::await([&](std::shared_ptr<void> ticket) {
    (void)loop_->authority().run(
        [&look](engine::Engine& engine) {
          look(engine);
          return true;
        },
        [&looked, ticket = std::move(ticket)] { looked = true; });
  });
  if (!looked) return failure(Errc::closed, "the coordinator has stopped");
  return {};
}

Result<core::TaskView> Coordinator::get(const std::string& ns, const TaskRef& task) {
  std::optional<core::TaskView> found;
  if (auto done = inspect([&](const core::State& state) { found = core::view(state, ns, task); }); !done) {
    return std::unexpected(done.error());
  }
  if (!found) return failure(Errc::not_found, "no such task: " + core::to_text(task));
  return std::move(*found);
}

Result<core::TaskPage> Coordinator::list(core::ListTasks query) {
  if (!core::is_name(query.ns)) {
    return failure(Errc::invalid_request, "the namespace must be 1 to 128 graphic ASCII characters");
  }
  if (!query.queue.empty() && !core::is_name(query.queue)) {
    return failure(Errc::invalid_request, "the queue must be empty or 1 to 128 graphic ASCII characters");
  }
  if (query.count_max < 1 || query.count_max > core::kListTasksMax) {
    return failure(Errc::invalid_request, "a page is 1 to 1000 tasks");
  }
  core::TaskPage page;
  if (auto done = inspect([&](const core::State& state) { page = core::list(state, query); }); !done) {
    return std::unexpected(done.error());
  }
  return page;
}

Result<core::QueuePage> Coordinator::queues(core::ListQueues query) {
  core::QueuePage page;
  if (auto done = inspect([&](const core::State& state) { page = core::queues(state, query); }); !done) {
    return std::unexpected(done.error());
  }
  return page;
}

Result<Bytes> Coordinator::read(const core::BlobRef& blob) { return loop_->authority().read(blob); }
std::vector<engine::SharedBytes> Coordinator::read_together(const std::vector<core::BlobRef>& blobs) {
  return loop_->authority().read_together(blobs);
}
Status Coordinator::make_snapshot() { return loop_->authority().make_snapshot(); }
const RecoverySummary& Coordinator::recovery() const { return loop_->authority().recovery(); }
std::uint64_t Coordinator::flushes() const { return loop_->authority().flushes(); }
Status Coordinator::close() { return loop_->close(); }

}  // namespace baton
