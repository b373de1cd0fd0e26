#include "client/decode.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace baton::client {
namespace {

using wire::RespValue;
using Type = RespValue::Type;

// Reads the members of a map. What is missing or of another type gives a harmless value and is remembered, so
// that a decoder reads all it wants and asks once.
class Members {
 public:
  explicit Members(const RespValue& map) : map_(map) {
    ok_ = map.type == Type::map || map.type == Type::array;
  }

  const std::string& text(std::string_view name) { return text(name, true); }
  const std::string& text_if(std::string_view name) { return text(name, false); }
  std::uint64_t number(std::string_view name) { return number(name, true); }
  std::uint64_t number_if(std::string_view name) { return number(name, false); }
  std::uint32_t count(std::string_view name) { return static_cast<std::uint32_t>(number(name)); }
  Instant instant(std::string_view name) { return {static_cast<std::int64_t>(number(name))}; }
  Instant instant_if(std::string_view name) { return {static_cast<std::int64_t>(number_if(name))}; }
  Duration duration(std::string_view name) { return {static_cast<std::int64_t>(number(name))}; }
  bool truth(std::string_view name) {
    const RespValue* value = map_.find(name);
    if (value == nullptr) return ok_ = false;
    return value->type == Type::boolean ? value->truth : value->number != 0;  // version 2 says 1 or 0
  }
  const RespValue& value(std::string_view name) {
    const RespValue* found = map_.find(name);
    if (found != nullptr) return *found;
    ok_ = false;
    return none_;
  }
  const RespValue& list(std::string_view name) {
    const RespValue& found = value(name);
    ok_ &= found.type == Type::array;
    return found;
  }
  bool ok() const { return ok_; }

 private:
  const std::string& text(std::string_view name, bool required) {
    const RespValue* value = map_.find(name);
    if (value != nullptr && value->is_text()) return value->text;
    ok_ &= !required && value == nullptr;
    return none_.text;
  }
  std::uint64_t number(std::string_view name, bool required) {
    const RespValue* value = map_.find(name);
    if (value != nullptr && value->type == Type::number) return static_cast<std::uint64_t>(value->number);
    ok_ &= !required && value == nullptr;
    return 0;
  }

  const RespValue& map_;
  const RespValue none_;
  bool ok_ = true;
};

std::unexpected<Error> puzzled() {
  return failure(Errc::unsupported_version,
                 "the coordinator's reply is not one that this client understands");
}

// A reply within another one may be an error too.
std::optional<Error> refusal(const RespValue& reply) {
  if (reply.type != Type::error) return {};
  return error_of(reply);
}

template <class T>
Result<std::vector<Result<T>>> decode_each(const RespValue& list, Result<T> (*decode)(const RespValue&)) {
  if (list.type != Type::array) return puzzled();
  std::vector<Result<T>> all;
  all.reserve(list.items.size());
  for (const RespValue& item : list.items) all.push_back(decode(item));
  return all;
}

Result<TaskView> decode_view(const RespValue& reply) {
  Members members(reply);
  TaskView view{
      .task = members.text("task"),
      .queue = members.text("queue"),
      .state = members.text("state"),
      .key = members.text_if("key"),
      .priority = members.count("priority"),
      .attempt = members.count("attempt"),
      .failures = members.count("failures"),
      .created_at = members.instant("created_at"),
      .since = members.instant("since"),
      .worker = members.text_if("worker"),
      .fence = members.text_if("fence"),
      .lease_expiry = members.instant_if("lease_expiry"),
      .dead_reason = members.text_if("dead_reason"),
      .retry_of = members.text_if("retry_of"),
      .capabilities = members.text_if("capabilities"),
  };
  if (!members.ok()) return puzzled();
  return view;
}

// None, as a coordinator of an older version says nothing of them.
StreamCounts decode_stream_counts(const RespValue& reply) {
  const RespValue* found = reply.find("streams");
  if (found == nullptr) return {};
  Members streams(*found);
  return {.services = streams.number_if("services"),
          .instances = streams.number_if("instances"),
          .streams = streams.number_if("streams"),
          .waiting = streams.number_if("waiting"),
          .held = streams.number_if("held"),
          .dead = streams.number_if("dead")};
}

TaskCounts decode_counts(const RespValue& reply) {
  Members members(reply);
  return {.queues = members.number("queues"),
          .waiting = members.number("waiting"),
          .leased = members.number("leased"),
          .completed = members.number("completed"),
          .failed = members.number("failed"),
          .dead = members.number("dead")};
}

Result<std::vector<Leased>> decode_tasks(const RespValue& list) {
  if (auto error = refusal(list)) return std::unexpected(std::move(*error));
  if (list.type != Type::array) return puzzled();
  std::vector<Leased> all;
  for (const RespValue& item : list.items) {
    Members members(item);
    all.push_back({.task = members.text("task"),
                   .lease = members.text("lease"),
                   .fence = members.text_if("fence"),
                   .queue = members.text_if("queue"),
                   .payload = members.text("payload"),
                   .attempt = members.count("attempt"),
                   .ttl = members.duration("ttl_ms")});
    if (!members.ok()) return puzzled();
  }
  return all;
}

constexpr std::string_view kRetryHint = "; retry_after_ms=";
constexpr Duration kRetryMax = days(1);

// When it is worth another try stands behind the message.
void take_hint(Error& error) {
  const std::size_t at = error.message.rfind(kRetryHint);
  if (at == std::string::npos) return;
  const char* const end = error.message.data() + error.message.size();
  std::int64_t wait_ms = 0;
  const auto [stop, wrong] = std::from_chars(error.message.data() + at + kRetryHint.size(), end, wait_ms);
  if (wrong != std::errc{} || stop != end || wait_ms < 0) return;
  error.retry_after = std::min(milliseconds(wait_ms), kRetryMax);
  error.message.erase(at);
}

}  // namespace

Error error_of(const RespValue& reply) {
  const std::string_view text = reply.text;
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space);
  if (const auto code = code_of(word)) {
    Error error{*code, std::string(text.substr(std::min(space + 1, text.size())))};
    take_hint(error);
    return error;
  }
  if (word == "NOAUTH" || word == "WRONGPASS" || word == "NOPERM")
    return {Errc::permission_denied, reply.text};
  return {Errc::invalid_request, reply.text};
}

Result<Submitted> decode_submitted(const RespValue& reply) {
  if (auto error = refusal(reply)) return std::unexpected(std::move(*error));
  Members members(reply);
  Submitted submitted{
      .task = members.text("task"), .existed = members.truth("existed"), .lsn = members.number("lsn")};
  if (!members.ok()) return puzzled();
  return submitted;
}

Result<std::vector<Result<Submitted>>> decode_submitted_many(const RespValue& reply) {
  return decode_each<Submitted>(reply, decode_submitted);
}

Result<std::vector<Leased>> decode_leased(const RespValue& reply) {
  Members members(reply);
  return decode_tasks(members.value("tasks"));
}

Result<Duration> decode_extended(const RespValue& reply) {
  if (auto error = refusal(reply)) return std::unexpected(std::move(*error));
  Members members(reply);
  const Duration ttl = members.duration("ttl_ms");
  if (!members.ok()) return puzzled();
  return ttl;
}

Result<std::vector<Result<Duration>>> decode_extended_many(const RespValue& reply) {
  Members members(reply);
  return decode_each<Duration>(members.value("leases"), decode_extended);
}

Result<Verdict> decode_verdict(const RespValue& reply) {
  if (auto error = refusal(reply)) return std::unexpected(std::move(*error));
  Members members(reply);
  Verdict verdict{.cancelled = members.text("status") == "CANCELLED",
                  .outcome = members.text_if("outcome"),
                  .retry_at = members.instant_if("retry_at"),
                  .lsn = members.number("lsn")};
  if (!members.ok()) return puzzled();
  return verdict;
}

Result<Next> decode_next(const RespValue& reply) {
  Members members(reply);
  Next next{.completed = decode_verdict(members.value("completed")),
            .tasks = decode_tasks(members.value("tasks"))};
  if (!members.ok()) return puzzled();
  return next;
}

Status decode_accepted(const RespValue& reply) {
  Members members(reply);
  members.text("status");
  if (!members.ok()) return puzzled();
  return {};
}

Result<Task> decode_task(const RespValue& reply) {
  Members members(reply);
  auto view = decode_view(members.value("task"));
  if (!view) return std::unexpected(std::move(view.error()));
  Task task{.view = std::move(*view),
            .payload = members.text("payload"),
            .result = members.text_if("result"),
            .reason = members.text_if("reason")};
  if (!members.ok()) return puzzled();
  return task;
}

Result<TaskPage> decode_page(const RespValue& reply) {
  Members members(reply);
  TaskPage page{.cursor = members.number("cursor")};
  for (const RespValue& item : members.list("tasks").items) {
    auto view = decode_view(item);
    if (!view) return std::unexpected(std::move(view.error()));
    page.tasks.push_back(std::move(*view));
  }
  if (!members.ok()) return puzzled();
  return page;
}

Result<QueuePage> decode_queues(const RespValue& reply) {
  Members members(reply);
  QueuePage page{.cursor = members.text_if("cursor")};
  for (const RespValue& item : members.list("queues").items) {
    Members queue(item);
    page.queues.push_back({.queue = queue.text("queue"),
                           .paused = queue.truth("paused"),
                           .waiting = queue.number("waiting"),
                           .delayed = queue.number("delayed"),
                           .leased = queue.number("leased"),
                           .completed = queue.number("completed"),
                           .failed = queue.number("failed"),
                           .dead = queue.number("dead")});
    if (!queue.ok()) return puzzled();
  }
  if (!members.ok()) return puzzled();
  return page;
}

Result<WorkerPage> decode_workers(const RespValue& reply) {
  Members members(reply);
  WorkerPage page{.cursor = members.number("cursor")};
  for (const RespValue& item : members.list("workers").items) {
    Members worker(item);
    WorkerView& view = page.workers.emplace_back(WorkerView{.worker = worker.text("worker"),
                                                            .leases = worker.number("leases"),
                                                            .capacity = worker.number("capacity"),
                                                            .capabilities = worker.text("capabilities")});
    if (item.find("silent_ms") != nullptr) view.silent_for = worker.duration("silent_ms");
    if (!worker.ok()) return puzzled();
  }
  if (!members.ok()) return puzzled();
  return page;
}

Result<Stats> decode_stats(const RespValue& reply) {
  Members members(reply);
  Members server(members.value("server"));
  Members here(members.value("namespace"));
  Stats stats{
      .lsn = members.number("lsn"),
      .version = server.text("version"),
      .uptime = server.duration("uptime_ms"),
      .epoch = server.number("epoch"),
      .recovery = server.duration("recovery_ms"),
      .memory_bytes = server.number("memory_bytes"),
      .connections_resp = server.number("connections_resp"),
      .connections_http = server.number("connections_http"),
      .workers = server.number("workers"),
      .leases = server.number("leases"),
      .commands = server.number("commands"),
      .refusals = server.number("refusals"),
      .durable_lag = server.number("durable_lag"),
      .flushes = server.number("flushes"),
      .flush_p50_us = server.number("flush_p50_us"),
      .flush_p99_us = server.number("flush_p99_us"),
      .flushed_entries = server.number("flushed_entries"),
      .flushed_bytes = server.number("flushed_bytes"),
      .batch_entries = server.number("batch_entries"),
      .disk = server.text_if("disk"),
      .disk_free_bytes = server.number_if("disk_free_bytes"),
      .tasks = decode_counts(members.value("tasks")),
      .ns = here.text("name"),
      .in_namespace = decode_counts(members.value("namespace")),
      .payload_bytes = here.number_if("payload_bytes"),
      .streams = decode_stream_counts(reply),
  };
  if (!members.ok() || !server.ok() || !here.ok()) return puzzled();
  return stats;
}

Result<std::uint64_t> decode_leases(const RespValue& reply) {
  Members members(reply);
  const std::uint64_t leases = members.number("leases");
  if (!members.ok()) return puzzled();
  return leases;
}

Result<std::uint64_t> decode_purged(const RespValue& reply) {
  Members members(reply);
  const std::uint64_t purged = members.number("purged");
  if (!members.ok()) return puzzled();
  return purged;
}

std::optional<Held> decode_lost(const RespValue& push) {
  if (push.items.empty() || !push.items[0].is_text() || push.items[0].text != "lost") return {};
  if (push.items.size() == 2) {  // with its members by name
    Members members(push.items[1]);
    Held held{members.text("task"), members.text("lease")};
    if (members.ok()) return held;
  } else if (push.items.size() >= 3 && push.items[1].is_text() && push.items[2].is_text()) {
    return Held{push.items[1].text, push.items[2].text};
  }
  return {};
}

}  // namespace baton::client
