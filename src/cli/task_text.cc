#include "cli/task_text.h"

#include "cli/table.h"

namespace baton::cli {
namespace {

constexpr std::size_t kReasonShownMax = 2000;  // characters

std::uint64_t ms(Instant at) { return static_cast<std::uint64_t>(at.ms); }

}  // namespace

JsonObject json_of(const client::TaskView& view) {
  JsonObject json;
  json.text("task", view.task).text("queue", view.queue).text("state", view.state);
  json.number("priority", view.priority).number("attempt", view.attempt).number("failures", view.failures);
  json.number("created_at", ms(view.created_at)).number("since", ms(view.since));
  if (!view.key.empty()) json.text("key", view.key);
  if (!view.worker.empty()) json.text("worker", view.worker);
  if (!view.fence.empty()) json.text("fence", view.fence);
  if (view.lease_expiry != Instant{}) json.number("lease_expiry", ms(view.lease_expiry));
  if (!view.dead_reason.empty()) json.text("dead_reason", view.dead_reason);
  if (!view.retry_of.empty()) json.text("retry_of", view.retry_of);
  if (!view.capabilities.empty()) json.text("capabilities", view.capabilities);
  return json;
}

JsonObject json_of(const client::Task& task) {
  JsonObject json;
  json.object("task", json_of(task.view)).bytes("payload", task.payload);
  if (task.view.state == "completed") return json.bytes("result", task.result);
  return json.bytes("reason", task.reason);
}

JsonObject json_of(const client::Submitted& submitted) {
  return JsonObject()
      .number("lsn", submitted.lsn)
      .text("task", submitted.task)
      .boolean("existed", submitted.existed);
}

std::string ending_of(const client::Task& task) {
  std::string text = task.view.has_ended() ? task.view.state : "has not ended, it is " + task.view.state;
  if (!task.view.dead_reason.empty()) text += " (" + task.view.dead_reason + ")";
  if (!task.reason.empty()) text += ": " + printable(task.reason, kReasonShownMax);
  return text;
}

}  // namespace baton::cli
