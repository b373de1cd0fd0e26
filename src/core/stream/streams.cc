#include "core/stream/streams.h"

#include "core/stream/keys.h"

namespace baton::core::streams {

Slot find_space(const Streams& all, std::string_view ns) { return all.space_names.find(ns); }

Slot find_service(const Streams& all, std::string_view ns, std::string_view service) {
  return all.service_names.find(service_key(ns, service));
}

Slot find_instance(const Streams& all, std::string_view ns, stream::InstanceId id) {
  const Slot space = find_space(all, ns);
  return space == 0 ? 0 : all.instance_ids.find(space, id.value);
}

bool was_evicted(const Streams& all, std::string_view ns, stream::InstanceId id) {
  const Slot space = find_space(all, ns);
  return space != 0 && all.tombstone_ids.find(space, id.value) != 0;
}

Slot find_message(const Streams& all, Slot service, stream::Lane lane, stream::MessageId id) {
  return all.message_ids.find(scope_of(service, lane), id.value);
}

Slot find_event(const Streams& all, Slot space, stream::StreamId of, stream::MessageId id) {
  const Slot event = space == 0 ? 0 : all.event_ids.find(space, id.value);
  return event != 0 && all.histories[all.events.all[event].history].id == of ? event : 0;
}

Slot find_receptor(const Streams& all, Slot space, stream::MessageId event, std::string_view receptor) {
  return space == 0 ? 0 : all.receptor_names.find(scoped_key(space, event.value, receptor));
}

Slot find_checkpoint(const Streams& all, Slot space, stream::StreamId of, std::string_view perspective) {
  return space == 0 ? 0 : all.checkpoint_names.find(scoped_key(space, of.value, perspective));
}

}  // namespace baton::core::streams
