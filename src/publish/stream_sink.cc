#include "publish/stream_sink.h"

#include "base/stop_after.h"
#include "stream/fresh_uuid.h"

namespace baton::publish {

using stream::WorkFlags;

// Whoever does not hear it notices the silence.
StreamSink::~StreamSink() {
  const StopAfter enough(seconds(2));
  for (const auto& [target, there] : services_) (void)there.coordinator->leave(there.self.id, enough.token());
}

StreamSink::There StreamSink::find(const std::string& target) {
  const std::scoped_lock lock(mutex_);
  There& found = services_[target];
  if (found.coordinator != nullptr) return found;
  const auto [ns, service] = destination_of(target);
  found = {&coordinators_.at(ns), {.id = {stream::fresh_uuid()}, .service = service}};
  return found;
}

// Unless another thread has done so.
void StreamSink::start_again_at(const std::string& target, const stream::Instance& evicted) {
  const std::scoped_lock lock(mutex_);
  stream::Instance& self = services_[target].self;
  if (self.id == evicted.id) self.id = {stream::fresh_uuid()};
}

// Whoever stores into an inbox belongs to its service. We claim nothing, so nothing is kept for us, and evict
// nobody; the others may evict us when we had nothing to say for a while.
Status StreamSink::publish(const stream::Work& work, std::stop_token lost) {
  stream::WorkBatchRequest request;
  request.new_inbox_messages = {{.id = work.message,
                                 .stream = work.stream,
                                 .type = work.type,
                                 .envelope_type = work.envelope_type,
                                 .data = work.data,
                                 .metadata = work.metadata,
                                 .scope = work.scope}};
  request.flags = WorkFlags::skip_inbox_claiming | WorkFlags::skip_outbox_claiming;
  request.stale = days(7);
  for (bool is_again = false;; is_again = true) {
    const There there = find(work.target);
    request.instance = there.self;
    const auto stored = there.coordinator->process_work_batch(request, lost);
    if (stored) return {};
    if (stored.error().code != Errc::lease_lost || is_again) return std::unexpected(stored.error());
    start_again_at(work.target, there.self);
  }
}

}  // namespace baton::publish
