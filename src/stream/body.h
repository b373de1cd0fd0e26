// The texts of a message as one run of bytes, for whoever keeps messages without looking into them: target,
// type, envelope type, data, metadata and scope, each with its length before it (base/bytes: text).
#pragma once

#include "base/bytes.h"
#include "stream/work.h"

namespace baton::stream {

Bytes body_of(const NewMessage& message);
// False if these are not the bytes of a body.
bool read_body(ByteView body, Work& into);

}  // namespace baton::stream
