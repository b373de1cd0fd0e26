#include "client/work_reply.h"

#include <optional>
#include <utility>

namespace baton::client {
namespace {

using namespace stream;
using Verdicts = std::vector<stream::Verdict>;
using wire::RespValue;

// Reads what it understands, and remembers if there was something that it did not.
class Reading {
 public:
  std::int64_t number(const RespValue& map, std::string_view name) {
    const RespValue* found = map.find(name);
    ok_ &= found != nullptr && found->type == RespValue::Type::number;
    return found == nullptr ? 0 : found->number;
  }
  std::string text(const RespValue& map, std::string_view name) {
    const RespValue* found = map.find(name);
    ok_ &= found != nullptr && found->is_text();
    return found == nullptr ? "" : found->text;
  }
  Uuid id(const RespValue& map, std::string_view name) {
    const auto parsed = parse_uuid(text(map, name));
    ok_ &= parsed.has_value();
    return parsed.value_or(Uuid{});
  }
  Verdicts verdicts(const RespValue& map, std::string_view name) {
    Verdicts read;
    if (const RespValue* found = map.find(name)) {
      for (const RespValue& one : found->items) read.push_back(verdict(one.text));
    }
    return read;
  }
  std::vector<Work> work(const RespValue& map) {
    std::vector<Work> read;
    const RespValue* found = map.find("work");
    ok_ &= found != nullptr;
    if (found == nullptr) return read;
    for (const RespValue& one : found->items) read.push_back(work_item(one));
    return read;
  }
  bool ok() const { return ok_; }

 private:
  stream::Verdict verdict(std::string_view word) {
    if (word == "ok") return stream::Verdict::ok;
    if (word == "lost_lease") return stream::Verdict::lost_lease;
    if (word == "duplicate") return stream::Verdict::duplicate;
    ok_ &= word == "unknown";
    return stream::Verdict::unknown;
  }
  Work work_item(const RespValue& one) {
    Work work{.lane = text(one, "lane") == "inbox" ? Lane::inbox : Lane::outbox,
              .message = {id(one, "message")},
              .epoch = {number(one, "epoch")},
              .partition = static_cast<std::int32_t>(number(one, "partition")),
              .sequence = number(one, "sequence"),
              .target = text(one, "target"),
              .type = text(one, "type"),
              .envelope_type = text(one, "envelope_type"),
              .data = text(one, "data"),
              .metadata = text(one, "metadata"),
              .scope = text(one, "scope"),
              .status = static_cast<MessageStatus>(number(one, "status")),
              .flags = static_cast<WorkFlags>(number(one, "flags")),
              .deliveries = static_cast<std::int32_t>(number(one, "deliveries")),
              .failures = static_cast<std::int32_t>(number(one, "failures")),
              .reason = static_cast<FailureReason>(number(one, "reason")),
              .error = text(one, "error")};
    if (one.find("stream") != nullptr) work.stream = StreamId{id(one, "stream")};
    return work;
  }
  bool ok_ = true;
};

}  // namespace

Result<WorkBatch> batch_of(const RespValue& reply) {
  Reading read;
  WorkBatch batch;
  if (reply.find("rank") != nullptr) {
    batch.standing = {static_cast<std::int32_t>(read.number(reply, "rank")),
                      static_cast<std::int32_t>(read.number(reply, "active"))};
  }
  const std::pair<std::string_view, Verdicts*> lists[] = {
      {"outbox_completions", &batch.outbox_completions},
      {"inbox_completions", &batch.inbox_completions},
      {"outbox_failures", &batch.outbox_failures},
      {"inbox_failures", &batch.inbox_failures},
      {"receptor_completions", &batch.receptor_completions},
      {"receptor_failures", &batch.receptor_failures},
      {"perspective_completions", &batch.perspective_completions},
      {"perspective_failures", &batch.perspective_failures},
      {"outbox_renewals", &batch.outbox_renewals},
      {"inbox_renewals", &batch.inbox_renewals},
      {"new_outbox_messages", &batch.new_outbox_messages},
      {"new_inbox_messages", &batch.new_inbox_messages},
  };
  for (const auto& [name, verdicts] : lists) *verdicts = read.verdicts(reply, name);
  if (reply.find("status") == nullptr) batch.work = read.work(reply);
  if (!read.ok()) return failure(Errc::unsupported_version, "the coordinator's reply is not understood");
  return batch;
}

}  // namespace baton::client
