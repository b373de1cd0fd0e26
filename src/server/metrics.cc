#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/task/task.h"
#include "server/figures.h"

namespace baton::server {
namespace {

constexpr std::size_t kQueuesShown = 1000;  // so that a page stays readable whatever users do

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

// Names are graphic ASCII; only these two have to be escaped.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out;
}

Instant oldest_waiting(const core::State& state, const core::Queue& queue, Instant now) {
  Instant oldest = now;
  for (const core::Slot slot : queue.lanes) {
    const core::Lane& lane = state.lanes[slot];
    if (lane.ready.head != 0) oldest = std::min(oldest, state.tasks[lane.ready.head].since);
    if (!lane.delayed.empty()) oldest = std::min(oldest, lane.delayed.first().at);
  }
  return oldest;
}

void put_queues(Text& text, const core::State& state, Instant now, const Principal* who) {
  std::vector<core::Slot> shown;
  std::uint64_t queues = 0;
  for (core::Slot slot = 1; slot < state.queues.end(); ++slot) {
    const core::Queue& queue = state.queues[slot];
    if (queue.name.empty() || who == nullptr || !who->may(Permission::query, queue.ns)) continue;
    ++queues;
    if (shown.size() < kQueuesShown) shown.push_back(slot);
  }
  const auto labels = [&](const core::Queue& queue) {
    return fmt::format("namespace=\"{}\",queue=\"{}\"", escaped(queue.ns), escaped(queue.name));
  };
  text.only("baton_queues", "gauge", "Queues that hold a task or are paused", queues);
  text.metric("baton_tasks", "gauge", "Tasks by queue and state");
  for (const core::Slot slot : shown) {
    const core::Queue& queue = state.queues[slot];
    for (std::size_t at = 0; at < core::kTaskStates; ++at) {
      const std::string_view name = core::name_of(static_cast<core::TaskState>(at));
      text.value("baton_tasks", fmt::format("{{{},state=\"{}\"}}", labels(queue), name), queue.counts[at]);
    }
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

void put_flushes(Text& text, const log::FlushStats& stats) {
  text.metric("baton_flush_seconds", "histogram", "Time to write and sync a batch");
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < stats.kBoundsUs.size(); ++at) {
    sum += stats.buckets[at];
    text.value("baton_flush_seconds_bucket", fmt::format("{{le=\"{}\"}}", stats.kBoundsUs[at] / 1e6), sum);
  }
  sum += stats.buckets.back();
  text.value("baton_flush_seconds_bucket", "{le=\"+Inf\"}", sum);
  text.value("baton_flush_seconds_sum", "", static_cast<double>(stats.total_us) / 1e6);
  text.value("baton_flush_seconds_count", "", sum);
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

std::string metrics_text(const engine::Authority& authority, const Counters& counters, const Principal* who) {
  const engine::Engine& engine = authority.engine();
  Text text;
  put_queues(text, engine.state(), engine.now(), who);
  put_counts(text, "baton_commands_total", "verb", "Verbs begun", counters.commands);
  put_counts(text, "baton_rejections_total", "code", "Requests refused", counters.rejections);
  put_counts(text, "baton_entries_total", "event", "Entries recorded", counters.entries);
  put_flushes(text, authority.flush_stats());
  text.only("baton_last_lsn", "gauge", "Newest entry", engine.state().last);
  text.only("baton_durable_lag_entries", "gauge", "Entries recorded and not yet durable",
            engine.state().last - authority.durable());
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
  text.only("process_resident_memory_bytes", "gauge", "Memory in use", resident_bytes());
  return text.take();
}

}  // namespace baton::server
