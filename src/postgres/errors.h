// What a failure of PostgreSQL means to a caller.
#pragma once

#include "base/result.h"
#include "postgres/connection.h"

namespace baton::postgres {

// The transaction did not happen and may be tried again at once: a deadlock, a conflict, a server going down.
bool is_passing(const Trouble& trouble);
// Whatever was asked, it would have gone wrong: the server is away, full or read-only, or others were in the
// way. Not a call that took too long, nor one in the middle of which the connection broke: that may well
// happen each time.
bool is_of_the_database(const Trouble& trouble);
// Somebody has ended the call, perhaps ourselves.
bool is_cancelled(const Trouble& trouble);

Error error_of(const Trouble& trouble);

}  // namespace baton::postgres
