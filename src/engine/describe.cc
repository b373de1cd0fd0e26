#include "engine/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>
#include <iterator>
#include <ranges>

#include "core/event_codec.h"

namespace baton::engine {
namespace {

using namespace core;

// In UTC, as in ISO 8601.
std::string utc_text(Instant at) {
  const std::int64_t ms = ((at.ms % 1000) + 1000) % 1000;
  const std::time_t whole = (at.ms - ms) / 1000;
  std::tm parts{};
  if (gmtime_r(&whole, &parts) == nullptr) return std::to_string(at.ms) + "ms";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, ms);
}

class Fields {
 public:
  void number(std::string_view name, std::uint64_t value) {
    all_.push_back({name, std::to_string(value), std::to_string(value)});
  }
  void text(std::string_view name, std::string_view value) {
    if (!value.empty()) all_.push_back({name, std::string(value), json_string(value)});
  }
  void instant(std::string_view name, Instant value) {
    if (value != Instant{}) all_.push_back({name, utc_text(value), std::to_string(value.ms)});
  }
  void bytes(std::string_view name, const BlobView& blob) {
    if (!blob.bytes.empty()) number(name, blob.bytes.size());
  }
  std::vector<Field> take() { return std::move(all_); }

 private:
  std::vector<Field> all_;
};

void tell(Fields& out, const TaskCreated& e) {
  out.text("namespace", e.ns), out.text("queue", e.queue), out.text("key", e.key);
  out.text("capabilities", e.capabilities), out.number("priority", e.priority);
  out.instant("eligible_at", e.eligible_at);
  if (e.retry_of != TaskId{}) out.text("retry_of", to_text(e.retry_of));
  if (e.retry != RetryPolicy{}) {
    out.text("retry",
             fmt::format("max_failures:{},base:{}ms,factor:{}%,max:{}ms,jitter:{}%", e.retry.max_failures,
                         e.retry.base.ms, e.retry.factor_percent, e.retry.max.ms, e.retry.jitter_percent));
  }
  if (e.max_attempts != kDefaultMaxAttempts) out.number("max_attempts", e.max_attempts);
  if (e.max_hold.ms != 0) out.number("max_hold_ms", static_cast<std::uint64_t>(e.max_hold.ms));
  out.bytes("payload_bytes", e.payload);
}
void tell(Fields& out, const LeaseGranted& e) {
  out.number("task", e.task), out.text("worker", e.worker), out.number("attempt", e.attempt);
  out.instant("expiry", e.expiry);
}
void tell(Fields& out, const LeaseExtended& e) {
  out.number("task", e.task), out.number("lease", e.lease), out.instant("expiry", e.expiry);
}
void tell(Fields& out, const LeasesExtended& e) {
  out.text("leases",
           fmt::format("{}", fmt::join(e.items | std::views::transform(&LeaseExtended::lease), ",")));
}
void tell(Fields& out, const LeaseExpired& e) { out.number("task", e.task), out.number("lease", e.lease); }
void tell(Fields& out, const TaskCompleted& e) {
  out.number("task", e.task), out.number("lease", e.lease), out.bytes("result_bytes", e.result);
}
void tell(Fields& out, const TaskCancelled& e) { out.number("task", e.task), out.number("lease", e.lease); }
void tell(Fields& out, const TaskFailed& e) {
  out.number("task", e.task), out.number("lease", e.lease), out.text("outcome", name_of(e.outcome));
  out.number("failures", e.failures), out.instant("retry_at", e.retry_at),
      out.bytes("reason_bytes", e.reason);
}
void tell(Fields& out, const TaskDead& e) {
  out.number("task", e.task), out.text("why", core::name_of(e.why)), out.text("actor", e.actor);
  out.bytes("note_bytes", e.note);
}
void tell(Fields& out, const TasksPurged& e) {
  out.text("tasks", fmt::format("{}", fmt::join(e.tasks, ",")));
}
void tell(Fields& out, const QueuePaused& e) { out.text("namespace", e.ns), out.text("queue", e.queue); }
void tell(Fields& out, const QueueResumed& e) { out.text("namespace", e.ns), out.text("queue", e.queue); }
void tell(Fields& out, const BlobMoved& e) {
  out.number("task", e.task), out.text("part", e.part == BlobPart::payload ? "payload" : "note");
  if (e.part == BlobPart::note) out.number("lease", e.lease);
  out.bytes("bytes", e.blob);
}
void tell(Fields& out, const WorkBatchApplied& e) {
  const auto count = [&](std::string_view name, std::size_t items) {
    if (items > 0) out.number(name, items);
  };
  out.text("namespace", e.ns), out.text("instance", stream::to_text(e.instance.value));
  if (e.heard && e.heard->joins) out.text("joins", e.heard->service), out.text("host", e.heard->host);
  count("reported", e.reports.size()), count("receptors", e.receptors.size());
  count("checkpoints", e.checkpoints.size()), count("renewed", e.renewals.size());
  count("stored", e.stored.size()), count("claimed_streams", e.claims.size());
  if (!e.claims.empty()) out.instant("lease_until", e.lease_until);
}
void tell(Fields& out, const InstancesEvicted& e) {
  out.text("instances", fmt::format("{}", fmt::join(e.instances, ",")));
}
void tell(Fields& out, const InstanceLeft& e) { out.number("instance", e.instance); }
void tell(Fields& out, const LettersReplayed& e) {
  out.text("letters", fmt::format("{}", fmt::join(e.letters, ",")));
}
void tell(Fields& out, const LettersPurged& e) {
  out.text("letters", fmt::format("{}", fmt::join(e.letters, ",")));
}
void tell(Fields& out, const StreamsForgotten& e) {
  const std::pair<std::string_view, std::size_t> counts[] = {{"seen", e.seen},
                                                             {"tombstones", e.tombstones},
                                                             {"events", e.events},
                                                             {"receptors", e.receptors},
                                                             {"checkpoints", e.checkpoints},
                                                             {"kept", e.kept},
                                                             {"idle_streams", e.idle.size()}};
  for (const auto& [name, count] : counts) {
    if (count > 0) out.number(name, count);
  }
}
void tell(Fields& out, const MessageBlobMoved& e) {
  out.number(e.is_letter ? "letter" : "message", e.number);
  out.text("part", e.part == MessagePart::body ? "body" : "error"), out.bytes("bytes", e.blob);
}
void tell(Fields&, const EpochStarted&) {}  // the key is a secret
void tell(Fields& out, const StateDigest& e) { out.text("digest", fmt::format("{:016x}", e.digest)); }
void tell(Fields& out, const SnapshotTaken& e) {
  out.number("snapshot", e.lsn), out.text("digest", fmt::format("{:016x}", e.digest));
}
void tell(Fields&, const Sealed&) {}

// Of the task that it is about, if there is one and its run is known.
std::string id_of(const Event& event, const Stamp& stamp, const Epochs& epochs) {
  if (std::holds_alternative<TaskCreated>(event)) return to_text(TaskId{stamp.epoch, stamp.lsn});
  const Lsn task = std::visit(
      [](const auto& fact) -> Lsn {
        if constexpr (requires { Lsn{fact.task}; }) return fact.task;
        return 0;
      },
      event);
  const auto epoch = task == 0 ? std::nullopt : epochs.of(task);
  return epoch ? to_text(TaskId{*epoch, task}) : "";
}

}  // namespace

void Epochs::saw(const Stamp& stamp) {
  if (first_.empty() || first_.rbegin()->second != stamp.epoch) first_.emplace(stamp.lsn, stamp.epoch);
}

std::optional<Epoch> Epochs::of(Lsn lsn) const {
  const auto after = first_.upper_bound(lsn);
  if (after == first_.begin()) return {};
  return std::prev(after)->second;
}

std::vector<Field> fields_of(const Event& event) {
  Fields fields;
  std::visit([&](const auto& fact) { tell(fields, fact); }, event);
  return fields.take();
}

std::string describe(const Event& event, const Stamp& stamp, const Epochs& epochs) {
  std::string line =
      fmt::format("{:>8}  {}  {:<14}", stamp.lsn, utc_text(stamp.time), core::name_of(type_of(event)));
  const std::string id = id_of(event, stamp, epochs);
  if (!id.empty()) line += " id=" + id;
  for (const Field& field : fields_of(event)) {
    const bool is_said = field.name == "task" && !id.empty();
    if (!is_said) line += fmt::format(" {}={}", field.name, field.value);
  }
  return line;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string describe_json(const Event& event, const Stamp& stamp, const Epochs& epochs) {
  std::string line = fmt::format(R"({{"lsn":{},"epoch":{},"time_ms":{},"type":"{}")", stamp.lsn, stamp.epoch,
                                 stamp.time.ms, core::name_of(type_of(event)));
  if (const std::string id = id_of(event, stamp, epochs); !id.empty()) line += R"(,"id":)" + json_string(id);
  for (const Field& field : fields_of(event)) {
    line += fmt::format(",\"{}\":{}", field.name, field.json);
  }
  return line + '}';
}

}  // namespace baton::engine
