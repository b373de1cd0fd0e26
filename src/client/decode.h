// Replies as the types that callers get.
#pragma once

#include "client/types.h"
#include "wire/resp_value.h"

namespace baton::client {

Result<Submitted> decode_submitted(const wire::RespValue& reply);
Result<std::vector<Result<Submitted>>> decode_submitted_many(const wire::RespValue& reply);
Result<std::vector<Leased>> decode_leased(const wire::RespValue& reply);
Result<Duration> decode_extended(const wire::RespValue& reply);
Result<std::vector<Result<Duration>>> decode_extended_many(const wire::RespValue& reply);
Result<Verdict> decode_verdict(const wire::RespValue& reply);
Result<Next> decode_next(const wire::RespValue& reply);
Status decode_accepted(const wire::RespValue& reply);
Result<Task> decode_task(const wire::RespValue& reply);
Result<TaskPage> decode_page(const wire::RespValue& reply);
Result<QueuePage> decode_queues(const wire::RespValue& reply);
Result<WorkerPage> decode_workers(const wire::RespValue& reply);
Result<Stats> decode_stats(const wire::RespValue& reply);
Result<std::uint64_t> decode_leases(const wire::RespValue& reply);
Result<std::uint64_t> decode_purged(const wire::RespValue& reply);
// A push that tells of a lost lease; nothing if it tells of something else.
std::optional<Held> decode_lost(const wire::RespValue& push);

// The error that an error reply stands for. A word that is not known here stays in the message.
Error error_of(const wire::RespValue& reply);

}  // namespace baton::client
