// Queues and workers: what there is, and what an operator does with them.
#include <utility>

#include "core/query.h"
#include "server/request_operation.h"
#include "server/verb.h"

namespace baton::server {
namespace {

constexpr Parameter kQueue{"queue", Kind::text, Place::position, "Queue"};
constexpr Parameter kOneQueue[] = {kQueue};
constexpr Parameter kQueues[] = {
    {"count", Kind::number, Place::option, "Queues on a page at most; 1000 if not given"},
    {"cursor", Kind::text, Place::option, "Where to go on, as the page before said"}};
constexpr Parameter kPurge[] = {kQueue,
                                {"count", Kind::number, Place::option, "Tasks at most; 1024 if not given"}};
constexpr Parameter kHeartbeat[] = {{"worker", Kind::text, Place::position, "Name of the worker"},
                                    {"capacity", Kind::number, Place::option, "Tasks it wants at a time"},
                                    {"capability", Kind::text, Place::repeated, "What it can do"}};

class QueuesOperation final : public Operation {
 public:
  explicit QueuesOperation(core::ListQueues query) : query_(std::move(query)) {}

  void begin(Desk& desk) override { desk.look(*this); }
  void look(engine::Engine& engine) override {
    query_.now = engine.now();
    page_ = core::queues(engine.state(), query_);
    lsn_ = engine.state().last;
  }
  std::size_t weight() const override { return 512; }
  void write(ReplyWriter& reply) override {
    reply.map(3);
    reply.member("lsn", lsn_);
    reply.name("queues");
    reply.list(page_.queues.size());
    for (const core::QueueView& queue : page_.queues) {
      reply.map(3 + core::kTaskStates);
      reply.member("queue", queue.name);
      reply.name("paused");
      reply.boolean(queue.paused);
      reply.member("delayed", queue.delayed);
      for (std::size_t state = 0; state < core::kTaskStates; ++state)
        reply.member(core::name_of(static_cast<core::TaskState>(state)), queue.counts[state]);
    }
    reply.member("cursor", page_.next);
  }

 private:
  core::ListQueues query_;
  core::QueuePage page_;
  core::Lsn lsn_ = 0;
};

class HeartbeatOperation final : public Operation {
 public:
  HeartbeatOperation(std::string ns, std::string worker, std::uint32_t capacity,
                     core::Capabilities capabilities)
      : ns_(std::move(ns)),
        worker_(std::move(worker)),
        capacity_(capacity),
        capabilities_(std::move(capabilities)) {}

  void begin(Desk& desk) override { desk.look(*this); }
  void look(engine::Engine& engine) override {
    engine.heartbeat(ns_, worker_, capacity_, capabilities_);
    leases_ = core::active_leases(engine.state(), ns_, worker_);
    lsn_ = engine.state().last;
  }
  void looked(Desk& desk) override {
    lost_ = desk.take_lost(*this);
    desk.capacity_changed(ns_);
  }
  void write(ReplyWriter& reply) override {
    reply.map(lost_.empty() ? 2 : 3);
    reply.member("lsn", lsn_);
    reply.member("leases", leases_);
    if (!lost_.empty()) write_lost(reply, lost_);
  }

 private:
  const std::string ns_;
  const std::string worker_;
  const std::uint32_t capacity_;
  const core::Capabilities capabilities_;
  std::uint32_t leases_ = 0;
  core::Lsn lsn_ = 0;
  std::vector<HeldLease> lost_;
};

std::unique_ptr<Operation> queues(const std::string& ns, Arguments& arguments) {
  return std::make_unique<QueuesOperation>(
      core::ListQueues{.ns = ns,
                       .after = std::string(arguments.text("cursor")),
                       .count_max = arguments.number("count", core::kListQueuesMax, core::kListQueuesMax)});
}

std::unique_ptr<Operation> heartbeat(const std::string& ns, Arguments& arguments) {
  return std::make_unique<HeartbeatOperation>(
      ns, arguments.name("worker"), static_cast<std::uint32_t>(arguments.number("capacity", 0, UINT32_MAX)),
      arguments.capabilities("capability"));
}

core::Request pause(const std::string& ns, Arguments& arguments) {
  return core::PauseQueue{.ns = ns, .queue = arguments.name("queue")};
}

core::Request resume(const std::string& ns, Arguments& arguments) {
  return core::ResumeQueue{.ns = ns, .queue = arguments.name("queue")};
}

core::Request purge(const std::string& ns, Arguments& arguments) {
  return core::PurgeQueue{.ns = ns,
                          .queue = arguments.name("queue"),
                          .count_max = static_cast<std::uint32_t>(arguments.number("count", 0, UINT32_MAX))};
}

constexpr Verb kVerbs[] = {
    {"queues", Permission::query, kQueues, queues,
     "A page of queues by name, with how many tasks are in which state", "Queues"},
    {"heartbeat", Permission::work, kHeartbeat, heartbeat, "A worker's word about itself", "Heard"},
    {"pause", Permission::admin, kOneQueue, pause, "No task of this queue is leased any more", "Committed"},
    {"resume", Permission::admin, kOneQueue, resume, "Tasks of this queue are leased again", "Committed"},
    {"purge", Permission::admin, kPurge, purge, "Forgets finished tasks of a queue now, oldest first",
     "Purged"},
};

}  // namespace

std::span<const Verb> queue_verbs() { return kVerbs; }

}  // namespace baton::server
