#include "publish/stream_sink.h"

#include "stream/fresh_uuid.h"

namespace baton::publish {

using stream::WorkFlags;

stream::WorkCoordinator& StreamSink::coordinator_of(const std::string& ns) {
  const std::scoped_lock lock(mutex_);
  auto& coordinator = coordinators_[ns];
  if (!coordinator) {
    client::ClientOptions options = options_;
    if (!ns.empty()) options.ns = ns;
    coordinator = std::make_unique<client::WorkCoordinator>(options);
  }
  return *coordinator;
}

// Whoever stores into an inbox belongs to its service, so we do for as long as that takes. We claim nothing,
// evict nobody, and wake the others when we go.
Status StreamSink::publish(const stream::Work& work, std::stop_token lost) {
  const std::size_t slash = work.target.find('/');
  const bool is_elsewhere = slash != std::string::npos;
  stream::WorkCoordinator& coordinator = coordinator_of(is_elsewhere ? work.target.substr(0, slash) : "");
  stream::WorkBatchRequest request;
  request.instance = {.id = {stream::fresh_uuid()},
                      .service = is_elsewhere ? work.target.substr(slash + 1) : work.target};
  request.new_inbox_messages = {{.id = work.message,
                                 .stream = work.stream,
                                 .type = work.type,
                                 .envelope_type = work.envelope_type,
                                 .data = work.data,
                                 .metadata = work.metadata,
                                 .scope = work.scope}};
  request.flags = WorkFlags::skip_inbox_claiming | WorkFlags::skip_outbox_claiming;
  request.stale = days(7);
  auto stored = coordinator.process_work_batch(request, lost);
  if (!stored) return std::unexpected(stored.error());
  // The message is there. If this does not get through, we count as silent before long.
  (void)coordinator.leave(request.instance.id);
  return {};
}

}  // namespace baton::publish
