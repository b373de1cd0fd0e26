// Ids that nobody has had before.
#pragma once

#include "stream/uuid.h"

namespace baton::stream {

// Version 7: the milliseconds since 1970 and then chance, so that later ones are larger and lie together in
// an index.
Uuid fresh_uuid();

}  // namespace baton::stream
