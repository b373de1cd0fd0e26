#include "stream/report.h"

namespace baton::stream {

Result<WorkBatch> report(WorkCoordinator& coordinator, const WorkBatchRequest& request) {
  WorkBatch batch;
  const InstanceId me = request.instance.id;
  auto standing = coordinator.heartbeat(request.instance, request.stale);
  if (!standing) return std::unexpected(standing.error());
  batch.standing = *standing;
  const auto say = [&](const auto& items, std::vector<Verdict>& verdicts, auto call) -> Status {
    if (items.empty()) return {};
    auto heard = call(items);
    if (!heard) return std::unexpected(heard.error());
    verdicts = std::move(*heard);
    return {};
  };
  const auto completes = [&](Lane lane) {
    return [&, lane](const auto& items) { return coordinator.complete(me, lane, items); };
  };
  const auto fails = [&](Lane lane) {
    return [&, lane](const auto& items) { return coordinator.fail(me, lane, items); };
  };
  const auto renews = [&](Lane lane) {
    return [&, lane](const auto& items) { return coordinator.renew(me, lane, items, request.lease); };
  };
  Status said = say(request.outbox_completions, batch.outbox_completions, completes(Lane::outbox));
  if (said) said = say(request.inbox_completions, batch.inbox_completions, completes(Lane::inbox));
  if (said) said = say(request.outbox_failures, batch.outbox_failures, fails(Lane::outbox));
  if (said) said = say(request.inbox_failures, batch.inbox_failures, fails(Lane::inbox));
  if (said) said = say(request.outbox_renewals, batch.outbox_renewals, renews(Lane::outbox));
  if (said) said = say(request.inbox_renewals, batch.inbox_renewals, renews(Lane::inbox));
  if (!said) return std::unexpected(said.error());
  return batch;
}

}  // namespace baton::stream
