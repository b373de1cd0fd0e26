#include "server/event_feed.h"

#include <fmt/format.h>

#include "core/event_codec.h"
#include "engine/describe.h"

namespace baton::server {
namespace {

// The task an entry is about; 0 if it is about none, or about many.
core::Lsn task_of(const core::Event& event, const core::Stamp& stamp) {
  return std::visit(
      [&](const auto& fact) -> core::Lsn {
        if constexpr (std::is_same_v<std::decay_t<decltype(fact)>, core::TaskCreated>) return stamp.lsn;
        if constexpr (requires { fact.task; }) return fact.task;
        return 0;
      },
      event);
}

// Only what happens to tasks and queues. A removal names tasks that nothing is known of any more, and where
// the bytes of a task lie is the log's own business.
bool is_told(const core::Event& event) {
  return core::type_of(event) <= core::EventType::queue_resumed &&
         !std::holds_alternative<core::TasksPurged>(event);
}

std::string sse(core::Lsn lsn, std::string_view name, std::string_view data) {
  return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", lsn, name, data);
}

// The fields of an entry as `baton log dump` shows them, but that tasks go by their ids and leases by the
// fence.
std::string data_of(const core::Event& event, const core::Stamp& stamp, const core::Queue& queue,
                    core::TaskId task) {
  std::string data =
      fmt::format(R"({{"lsn":{},"time":{},"namespace":{},"queue":{})", stamp.lsn, stamp.time.ms,
                  engine::json_string(queue.ns), engine::json_string(queue.name));
  if (task != core::TaskId{}) data += fmt::format(R"(,"task":"{}")", core::to_text(task));
  if (std::holds_alternative<core::LeaseGranted>(event))
    data += fmt::format(R"(,"fence":"{}")", core::fence_text({stamp.epoch, stamp.lsn, 0}));
  for (const engine::Field& field : engine::fields_of(event)) {
    const bool said = field.name == "namespace" || field.name == "queue" || field.name == "task";
    if (!said && field.name != "lease") data += fmt::format(R"(,"{}":{})", field.name, field.json);
  }
  return data + '}';
}

}  // namespace

bool EventFeed::watch(EventWatcher& who, EventFilter filter, std::optional<core::Lsn> seen, Instant now) {
  if (watchers_.size() >= kWatchersMax) return false;
  watchers_[&who] = {.filter = std::move(filter), .from = state_.last, .seen = seen, .last_told = now};
  return true;
}

void EventFeed::recorded(const core::Event& event, const core::Stamp& stamp) {
  if (watchers_.empty() || !is_told(event)) return;
  if (const auto* many = std::get_if<core::LeasesExtended>(&event)) {
    for (const core::LeaseExtended& one : many->items) add(one, stamp, one.task);
  } else {
    add(event, stamp, task_of(event, stamp));
  }
}

void EventFeed::add(const core::Event& event, const core::Stamp& stamp, core::Lsn task) {
  core::Slot queue = 0;
  core::TaskId id;
  if (task != 0) {
    const core::Task& known = state_.tasks[state_.ids.find(task)];
    queue = state_.lanes[known.lane].queue;
    id = known.id();
  } else if (const auto* paused = std::get_if<core::QueuePaused>(&event)) {
    queue = core::find_queue(state_, paused->ns, paused->queue);
  }
  // A queue that is resumed and empty is gone by now.
  core::Queue resumed;
  if (const auto* event_of = std::get_if<core::QueueResumed>(&event)) {
    resumed.ns = event_of->ns;
    resumed.name = event_of->queue;
  }
  const core::Queue& at = queue != 0 ? state_.queues[queue] : resumed;
  const std::string_view name = core::name_of(core::type_of(event));
  waiting_.push_back({.lsn = stamp.lsn,
                      .ns = at.ns,
                      .queue = at.name,
                      .task = id,
                      .text = sse(stamp.lsn, name, data_of(event, stamp, at, id))});
}

bool EventFeed::wants(const Watcher& watcher, const Told& told) {
  const EventFilter& filter = watcher.filter;
  return told.lsn > watcher.from && told.ns == filter.ns &&
         (filter.queue.empty() || told.queue == filter.queue) && (!filter.task || told.task == *filter.task);
}

void EventFeed::tell(core::Lsn durable, Instant now) {
  if (watchers_.empty()) return waiting_.clear();
  const auto tell_one = [&](EventWatcher* who, Watcher& watcher, std::string_view text) {
    watcher.last_told = now;
    who->happened(text);
  };
  for (auto& [who, watcher] : watchers_) {
    if (watcher.begun || watcher.from > durable) continue;
    watcher.begun = true;
    if (watcher.seen && *watcher.seen != watcher.from)
      tell_one(
          who, watcher,
          sse(watcher.from, "gap", fmt::format(R"({{"after":{},"until":{}}})", *watcher.seen, watcher.from)));
    tell_one(who, watcher, sse(watcher.from, "begin", fmt::format(R"({{"lsn":{}}})", watcher.from)));
  }
  for (; !waiting_.empty() && waiting_.front().lsn <= durable; waiting_.pop_front()) {
    for (auto& [who, watcher] : watchers_) {
      if (wants(watcher, waiting_.front())) tell_one(who, watcher, waiting_.front().text);
    }
  }
  for (auto& [who, watcher] : watchers_) {
    if (now - watcher.last_told >= kQuietMax) tell_one(who, watcher, ": still here\n\n");
  }
}

}  // namespace baton::server
