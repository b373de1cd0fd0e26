// The server as a whole: its figures, and who works for it.
#include <utility>

#include "core/query.h"
#include "core/stream/stream_query.h"
#include "core/usage.h"
#include "core/worker/roster.h"
#include "server/desk.h"
#include "server/figures.h"
#include "server/verb.h"

namespace baton::server {
namespace {

constexpr Parameter kWorkers[] = {
    {"count", Kind::number, Place::option, "Workers on a page at most; 100 if not given"},
    {"cursor", Kind::number, Place::option, "Where to go on, as the page before said"}};

void write_counts(ReplyWriter& reply, const core::Tally& tally) {
  reply.member("queues", tally.queues);
  for (std::size_t state = 0; state < core::kTaskStates; ++state)
    reply.member(core::name_of(static_cast<core::TaskState>(state)), tally.tasks[state]);
}

void write_figures(ReplyWriter& reply, const Figures& figures) {
  const std::pair<std::string_view, std::uint64_t> members[] = {
      {"uptime_ms", figures.uptime.ms},
      {"epoch", figures.epoch},
      {"recovery_ms", figures.recovery_took.ms},
      {"memory_bytes", figures.memory_bytes},
      {"connections_resp", figures.connections_resp},
      {"connections_http", figures.connections_http},
      {"workers", figures.workers},
      {"leases", figures.leases},
      {"commands", figures.commands},
      {"refusals", figures.refusals},
      {"durable_lag", figures.durable_lag},
      {"flushes", figures.flushes},
      {"flush_p50_us", figures.flush_p50_us},
      {"flush_p99_us", figures.flush_p99_us},
      {"flushed_entries", figures.flushed_entries},
      {"flushed_bytes", figures.flushed_bytes},
      {"batch_entries", figures.batch_entries()},
      {"disk_free_bytes", figures.disk_free_bytes},
  };
  reply.map(2 + std::size(members));
  reply.member("version", BATON_VERSION);
  reply.member("disk", disk_word(figures.admission));
  for (const auto& [name, value] : members) reply.member(name, value);
}

void write_streams(ReplyWriter& reply, const core::StreamTally& tally) {
  reply.map(6);
  reply.member("services", tally.services);
  reply.member("instances", tally.instances);
  reply.member("streams", tally.streams);
  reply.member("waiting", tally.waiting);
  reply.member("held", tally.held);
  reply.member("dead", tally.dead);
}

class StatsOperation final : public Operation {
 public:
  explicit StatsOperation(std::string ns) : ns_(std::move(ns)) {}

  std::size_t weight() const override { return 512; }  // all queues are counted
  void begin(Desk& desk) override {
    figures_ = figures(desk.authority(), desk.counters);
    desk.look(*this);
  }
  void look(engine::Engine& engine) override {
    all_ = core::tally(engine.state());
    own_ = core::tally(engine.state(), ns_);
    payload_bytes_ = core::usage_of(engine.state(), ns_).payload_bytes;
    streams_ = core::stream_tally(engine.state());
    lsn_ = engine.state().last;
  }
  void write(ReplyWriter& reply) override {
    reply.map(5);
    reply.member("lsn", lsn_);
    reply.name("server");
    write_figures(reply, figures_);
    reply.name("tasks");
    reply.map(1 + core::kTaskStates);
    write_counts(reply, all_);
    reply.name("namespace");
    reply.map(3 + core::kTaskStates);
    reply.member("name", ns_);
    write_counts(reply, own_);
    reply.member("payload_bytes", payload_bytes_);
    reply.name("streams");
    write_streams(reply, streams_);
  }

 private:
  const std::string ns_;
  Figures figures_;
  core::Tally all_;
  core::Tally own_;
  core::StreamTally streams_;
  std::uint64_t payload_bytes_ = 0;
  core::Lsn lsn_ = 0;
};

class WorkersOperation final : public Operation {
 public:
  explicit WorkersOperation(core::ListWorkers query) : query_(std::move(query)) {}

  void begin(Desk& desk) override { desk.look(*this); }
  void look(engine::Engine& engine) override {
    page_ = core::workers(engine.state(), engine.workers(), query_, engine.now());
    lsn_ = engine.state().last;
  }
  std::size_t weight() const override { return 512; }
  void write(ReplyWriter& reply) override {
    reply.map(3);
    reply.member("lsn", lsn_);
    reply.name("workers");
    reply.list(page_.workers.size());
    for (const core::WorkerView& worker : page_.workers) {
      reply.map(worker.silent_for ? 5 : 4);
      reply.member("worker", worker.name);
      reply.member("leases", worker.leases);
      reply.member("capacity", worker.capacity);
      reply.member("capabilities", worker.capabilities);
      if (worker.silent_for) reply.member("silent_ms", static_cast<std::uint64_t>(worker.silent_for->ms));
    }
    reply.member("cursor", page_.next);
  }

 private:
  const core::ListWorkers query_;
  core::WorkerPage page_;
  core::Lsn lsn_ = 0;
};

std::unique_ptr<Operation> stats(const std::string& ns, Arguments&) {
  return std::make_unique<StatsOperation>(ns);
}

std::unique_ptr<Operation> workers(const std::string& ns, Arguments& arguments) {
  return std::make_unique<WorkersOperation>(
      core::ListWorkers{.ns = ns,
                        .from = arguments.number("cursor", 0, INT64_MAX),
                        .count_max = arguments.number("count", 100, core::kListWorkersMax)});
}

constexpr Verb kVerbs[] = {
    {"stats",
     Permission::query,
     {},
     stats,
     "Figures of the server and of streams, and tasks by state in all and here",
     "Stats"},
    {"workers", Permission::query, kWorkers, workers,
     "A page of workers: those that hold tasks, then those heard of in the last ten minutes", "Workers"},
};

}  // namespace

std::span<const Verb> server_verbs() { return kVerbs; }

}  // namespace baton::server
