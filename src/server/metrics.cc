#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/stream/stream_query.h"
#include "core/stream/work_request.h"
#include "core/task/task.h"
#include "server/figures.h"

namespace baton::server {
namespace {

constexpr std::size_t kQueuesShown = 1000;  // so that a page stays readable whatever users do
constexpr std::size_t kServicesShown = 1000;

class Text {
 public:
  void metric(std::string_view name, std::string_view type, std::string_view help) {
    fmt::format_to(std::back_inserter(out_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <class Value>
  void value(std::string_view name, std::string_view labels, Value value) {
    fmt::format_to(std::back_inserter(out_), "{}{} {}\n", name, labels, value);
  }
  template <class Value>
  void only(std::string_view name, std::string_view type, std::string_view help, Value given) {
    metric(name, type, help);
    value(name, "", given);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Names of services may have lines; others are graphic ASCII.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\' || letter == '\n') out += '\\';
    out += letter == '\n' ? 'n' : letter;
  }
  return out;
}

Instant oldest_waiting(const core::State& state, const core::Queue& queue, Instant now) {
  Instant oldest = now;
  for (const core::Slot slot : queue.open_lanes()) {
    const core::Lane& lane = state.lanes[slot];
    if (lane.ready.head != 0) oldest = std::min(oldest, state.tasks[lane.ready.head].since);
    if (!lane.delayed.empty()) oldest = std::min(oldest, lane.delayed.first().at);
  }
  return oldest;
}

std::string labels_of(std::string_view ns, std::string_view queue) {
  return fmt::format("namespace=\"{}\",queue=\"{}\"", escaped(ns), escaped(queue));
}

// No name has a blank in it.
constexpr std::string_view kOthers = R"(namespace="all others",queue="all others")";

void put_queues(Text& text, const core::State& state, Instant now, const Principal* who) {
  std::vector<core::Slot> shown;
  std::array<std::uint64_t, core::kTaskStates> others{};
  std::uint64_t queues = 0;
  for (core::Slot slot = 1; slot < state.queues.end(); ++slot) {
    const core::Queue& queue = state.queues[slot];
    if (queue.name.empty() || who == nullptr || !who->may(Permission::query, queue.ns)) continue;
    ++queues;
    if (shown.size() < kQueuesShown) {
      shown.push_back(slot);
    } else {
      for (std::size_t at = 0; at < core::kTaskStates; ++at) others[at] += queue.counts[at];
    }
  }
  const auto labels = [&](const core::Queue& queue) { return labels_of(queue.ns, queue.name); };
  text.only("baton_queues", "gauge", "Queues that hold a task or are paused", queues);
  text.metric("baton_tasks", "gauge", "Tasks by queue and state");
  for (const core::Slot slot : shown) {
    const core::Queue& queue = state.queues[slot];
    for (std::size_t at = 0; at < core::kTaskStates; ++at) {
      const std::string_view name = core::name_of(static_cast<core::TaskState>(at));
      text.value("baton_tasks", fmt::format("{{{},state=\"{}\"}}", labels(queue), name), queue.counts[at]);
    }
  }
  for (std::size_t at = 0; queues > shown.size() && at < core::kTaskStates; ++at) {
    const std::string_view name = core::name_of(static_cast<core::TaskState>(at));
    text.value("baton_tasks", fmt::format("{{{},state=\"{}\"}}", kOthers, name), others[at]);
  }
  text.metric("baton_queue_paused", "gauge", "1 while no task of the queue is leased");
  for (const core::Slot slot : shown) {
    const core::Queue& queue = state.queues[slot];
    text.value("baton_queue_paused", fmt::format("{{{}}}", labels(queue)), queue.paused ? 1 : 0);
  }
  text.metric("baton_oldest_waiting_seconds", "gauge", "How long the oldest eligible task has waited");
  for (const core::Slot slot : shown) {
    const core::Queue& queue = state.queues[slot];
    const Duration waited = now - oldest_waiting(state, queue, now);
    text.value("baton_oldest_waiting_seconds", fmt::format("{{{}}}", labels(queue)),
               static_cast<double>(waited.ms) / 1000);
  }
}

void put_streams(Text& text, const engine::Engine& engine, const Principal* who) {
  const core::streams::Streams& all = engine.state().streams;
  struct Shown {
    std::string labels;
    core::LaneView lane;
  };
  std::vector<Shown> shown;
  std::map<std::string, std::uint64_t> instances;
  std::size_t services = 0;
  for (core::Slot slot = 1; slot < all.services.end() && services < kServicesShown; ++slot) {
    const core::streams::Service& service = all.services[slot];
    if (!service.is_known() || who == nullptr || !who->may(Permission::query, service.ns)) continue;
    const std::string labels =
        fmt::format("namespace=\"{}\",service=\"{}\"", escaped(service.ns), escaped(service.name));
    ++services;
    instances[fmt::format("{},state=\"active\"", labels)];  // that there is none is what an alert is for
    for (const auto& [id, instance] : service.instances) {
      const Instant heard = engine.workers().instances.last_heard(all.instances[instance]);
      const bool is_active = heard >= engine.now() - stream::kStale;
      ++instances[fmt::format("{},state=\"{}\"", labels, is_active ? "active" : "stale")];
    }
    for (const stream::Lane lane : core::kLanes)
      shown.push_back(
          {fmt::format("{},lane=\"{}\"", labels, lane == stream::Lane::outbox ? "outbox" : "inbox"),
           core::lane_view(service, lane, engine.now())});
  }
  text.metric("baton_stream_messages", "gauge", "Messages by what is happening to them");
  for (const auto& [labels, lane] : shown) {
    const std::pair<std::string_view, std::uint64_t> states[] = {
        {"waiting", lane.waiting}, {"held", lane.held}, {"dead", lane.dead}};
    for (const auto& [name, count] : states)
      text.value("baton_stream_messages", fmt::format("{{{},state=\"{}\"}}", labels, name), count);
  }
  text.metric("baton_stream_streams", "gauge", "Streams that have messages");
  for (const auto& [labels, lane] : shown) {
    const std::pair<std::string_view, std::uint64_t> states[] = {
        {"all", lane.streams}, {"held", lane.held_streams}, {"parked", lane.parked_streams}};
    for (const auto& [name, count] : states)
      text.value("baton_stream_streams", fmt::format("{{{},state=\"{}\"}}", labels, name), count);
  }
  text.metric("baton_stream_oldest_claimable_seconds", "gauge",
              "For how long the oldest message has waited that could be claimed");
  for (const auto& [labels, lane] : shown)
    text.value("baton_stream_oldest_claimable_seconds", fmt::format("{{{}}}", labels),
               static_cast<double>(lane.oldest_claimable.value_or(Duration{}).ms) / 1000);
  text.metric("baton_stream_instances", "gauge", "Instances that have called, and were not evicted");
  for (const auto& [labels, count] : instances)
    text.value("baton_stream_instances", fmt::format("{{{}}}", labels), count);
  text.only("baton_stream_remembered_messages", "gauge", "Messages that inboxes would know again",
            all.seen.all.used());
  text.only("baton_stream_remembered_messages_max", "gauge",
            "Beyond this inboxes forget the oldest before their time", engine.rules().streams.remembered_max);
}

void put_queue_counts(Text& text, const QueueCounts& counts, const Principal* who) {
  text.metric("baton_queue_events_total", "counter", "What happened to the tasks of a queue since the start");
  const auto put = [&](std::string_view labels, const QueueCounts::Counts& one) {
    for (std::size_t at = 0; at < one.of.size(); ++at)
      text.value("baton_queue_events_total", fmt::format("{{{},event=\"{}\"}}", labels, counts.kWhat[at]),
                 one.of[at]);
  };
  for (const QueueCounts::Counts& one : counts.each()) {
    if (who != nullptr && who->may(Permission::query, one.ns)) put(labels_of(one.ns, one.queue), one);
  }
  const bool is_full = counts.each().size() == QueueCounts::kQueuesMax;
  if (is_full && who != nullptr && who->may(Permission::query, "*")) put(kOthers, counts.others());
}

// What was counted up to each bound; a bound has `per` to the unit that is shown.
template <class Bounds, class Buckets>
void put_histogram(Text& text, const std::string& name, std::string_view help, const Bounds& bounds,
                   double per, const Buckets& buckets, double total) {
  text.metric(name, "histogram", help);
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < bounds.size(); ++at) {
    sum += buckets[at];
    text.value(name + "_bucket", fmt::format("{{le=\"{}\"}}", bounds[at] / per), sum);
  }
  sum += buckets.back();
  text.value(name + "_bucket", "{le=\"+Inf\"}", sum);
  text.value(name + "_sum", "", total / per);
  text.value(name + "_count", "", sum);
}

void put_flushes(Text& text, const log::FlushStats& stats) {
  put_histogram(text, "baton_flush_seconds", "Time to write and sync a batch", stats.kBoundsUs, 1e6,
                stats.buckets, static_cast<double>(stats.total_us));
  put_histogram(text, "baton_batch_entries", "Entries in a batch", stats.kBoundsRecords, 1, stats.sizes,
                static_cast<double>(stats.total_records));
  text.only("baton_flushed_entries_total", "counter", "Entries made durable", stats.total_records.load());
  text.only("baton_flushed_bytes_total", "counter", "Bytes of log written", stats.total_bytes.load());
}

template <class Counts>
void put_counts(Text& text, std::string_view name, std::string_view label, std::string_view help,
                const Counts& counts) {
  text.metric(name, "counter", help);
  for (const auto& [key, count] : counts) text.value(name, fmt::format("{{{}=\"{}\"}}", label, key), count);
}

}  // namespace

std::string metrics_text(const Desk& desk, const Principal* who) {
  const engine::Authority& authority = desk.authority();
  const engine::Engine& engine = authority.engine();
  const Counters& counters = desk.counters;
  Text text;
  put_queues(text, engine.state(), engine.now(), who);
  put_streams(text, engine, who);
  put_queue_counts(text, desk.queue_counts, who);
  put_counts(text, "baton_commands_total", "verb", "Verbs begun", counters.commands);
  put_counts(text, "baton_rejections_total", "code", "Requests refused", counters.rejections);
  put_counts(text, "baton_entries_total", "event", "Entries recorded", counters.entries);
  put_flushes(text, authority.flush_stats());
  text.only("baton_last_lsn", "gauge", "Newest entry", engine.state().last);
  text.only("baton_durable_lag_entries", "gauge", "Entries recorded and not yet durable",
            engine.state().last - authority.durable());
  text.only("baton_disk_free_bytes", "gauge", "Free on the disk of the log", authority.disk_free_bytes());
  text.only("baton_disk_nearly_full", "gauge", "1 while submissions are refused for want of space",
            engine.admission() == engine::Admission::open ? 0 : 1);
  text.only("baton_disk_full", "gauge", "1 while nothing can be recorded for want of space",
            engine.admission() == engine::Admission::closed ? 1 : 0);
  text.only("baton_epoch", "gauge", "Number of this run", engine.state().epoch);
  text.only("baton_workers", "gauge", "Workers heard of in the last ten minutes", engine.workers().size());
  text.only("baton_recovery_seconds", "gauge", "How long the last start took to recover",
            static_cast<double>(authority.recovery().took.ms) / 1000);
  text.metric("baton_connections", "gauge", "Connections open");
  text.value("baton_connections", "{protocol=\"resp\"}", counters.connections_resp);
  text.value("baton_connections", "{protocol=\"http\"}", counters.connections_http);
  text.only("baton_connections_total", "counter", "Connections accepted", counters.connections_total);
  text.only("baton_connections_refused_total", "counter", "Connections refused, for there were too many",
            counters.connections_refused);
  text.only("baton_unsent_bytes", "gauge", "Replies that wait for their readers", counters.unsent_bytes);
  text.only("baton_fetched_bytes", "gauge", "Read from the log for replies that are not written yet",
            counters.fetched_bytes);
  text.only("baton_half_bytes", "gauge", "Of commands that have come in part", counters.half_bytes);
  text.only("process_resident_memory_bytes", "gauge", "Memory in use", resident_bytes());
  return text.take();
}

Page metrics_page(const Desk& desk, const PrincipalRef& who) {
  return {.type = "text/plain; version=0.0.4", .content = {}, .look = [&desk, who] {
            return metrics_text(desk, who.get());
          }};
}

}  // namespace baton::server
