#include "stream/body.h"

namespace baton::stream {

Bytes body_of(const NewMessage& message) {
  Bytes bytes;
  bytes.reserve(message.data.size() + message.metadata.size() + message.scope.size() + message.target.size() +
                message.type.size() + message.envelope_type.size() + 24);
  ByteWriter out(bytes);
  out.text(message.target), out.text(message.type), out.text(message.envelope_type);
  out.text(message.data), out.text(message.metadata.empty() ? "{}" : message.metadata);
  out.text(message.scope);
  return bytes;
}

bool read_body(ByteView body, Work& into) {
  ByteReader in(body);
  into.target = in.text(), into.type = in.text(), into.envelope_type = in.text();
  into.data = in.text(), into.metadata = in.text(), into.scope = in.text();
  return in.finished();
}

}  // namespace baton::stream
