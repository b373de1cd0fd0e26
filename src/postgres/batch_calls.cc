#include "postgres/batch_calls.h"

#include "postgres/work_calls.h"
#include "postgres/work_rows.h"

namespace baton::postgres {

using namespace stream;

namespace {

// The first call: a heartbeat, with the locks for all that follows where anything does.
Call opening(const WorkBatchRequest& request) {
  Touched touched;
  const auto report = [&](std::size_t lane, const auto& completions, const auto& failures,
                          const std::vector<Held>& renewals) {
    for (const auto& item : completions) touched.reported[lane].push_back(item.held);
    for (const auto& item : failures) touched.reported[lane].push_back(item.held);
    touched.reported[lane].insert(touched.reported[lane].end(), renewals.begin(), renewals.end());
  };
  report(0, request.outbox_completions, request.outbox_failures, request.outbox_renewals);
  report(1, request.inbox_completions, request.inbox_failures, request.inbox_renewals);
  touched.store(Lane::outbox, request.new_outbox_messages);
  touched.store(Lane::inbox, request.new_inbox_messages);
  if (touched.is_nothing()) return heartbeat_call(request.instance, request.stale);
  return begin_call(request.instance, request.stale, touched, request.partitions);
}

}  // namespace

BatchCalls::BatchCalls(const WorkBatchRequest& request) {
  const InstanceId me = request.instance.id;
  const bool keep = has(request.flags, WorkFlags::debug_mode);
  calls_.push_back(opening(request));
  // Each list is in order; two of a kind need not be in one order.
  const bool both_of_receptors = !request.receptor_completions.empty() && !request.receptor_failures.empty();
  const bool both_of_perspectives =
      !request.perspective_completions.empty() && !request.perspective_failures.empty();
  if (both_of_receptors || both_of_perspectives) calls_.push_back(lock_results_call(request));
  first_answer_ = calls_.size();
  const auto add = [&](const auto& items, std::vector<Verdict> WorkBatch::* where, auto make) {
    if (items.empty()) return;
    calls_.push_back(make(items));
    answers_.push_back({where, items.size()});
  };
  const auto completes = [&](Lane lane) {
    return [=](const auto& items) { return complete_call(me, lane, items, keep); };
  };
  const auto fails = [&](Lane lane) { return [=](const auto& items) { return fail_call(me, lane, items); }; };
  const auto receptors = [&](bool failed) {
    return [=](const auto& items) { return receptor_call(me, items, failed); };
  };
  const auto perspectives = [&](bool failed) {
    return [=](const auto& items) { return perspective_call(me, items, failed); };
  };
  const auto renews = [&](Lane lane) {
    return [=, &request](const auto& items) { return renew_call(me, lane, items, request.lease); };
  };
  const auto stores = [&](Lane lane) {
    return [=, &request](const auto& items) { return store_call(me, lane, items, request.partitions); };
  };
  add(request.outbox_completions, &WorkBatch::outbox_completions, completes(Lane::outbox));
  add(request.inbox_completions, &WorkBatch::inbox_completions, completes(Lane::inbox));
  add(request.outbox_failures, &WorkBatch::outbox_failures, fails(Lane::outbox));
  add(request.inbox_failures, &WorkBatch::inbox_failures, fails(Lane::inbox));
  add(request.receptor_completions, &WorkBatch::receptor_completions, receptors(false));
  add(request.receptor_failures, &WorkBatch::receptor_failures, receptors(true));
  add(request.perspective_completions, &WorkBatch::perspective_completions, perspectives(false));
  add(request.perspective_failures, &WorkBatch::perspective_failures, perspectives(true));
  add(request.outbox_renewals, &WorkBatch::outbox_renewals, renews(Lane::outbox));
  add(request.inbox_renewals, &WorkBatch::inbox_renewals, renews(Lane::inbox));
  add(request.new_outbox_messages, &WorkBatch::new_outbox_messages, stores(Lane::outbox));
  add(request.new_inbox_messages, &WorkBatch::new_inbox_messages, stores(Lane::inbox));
  const auto claim = claim_of(request);
  if (!claim) return;
  calls_.push_back(lease_call(me, *claim, request.new_outbox_messages));
  calls_.push_back(given_call(me));
  claims_ = true;
}

WorkBatch BatchCalls::batch_of(const std::vector<Rows>& rows) const {
  WorkBatch batch{.standing = standing_of(rows.front())};
  if (claims_) batch.work = work_of(rows.back());
  for (std::size_t i = 0; i < answers_.size(); ++i)
    batch.*answers_[i].where = verdicts_of(rows[first_answer_ + i], answers_[i].items);
  return batch;
}

}  // namespace baton::postgres
