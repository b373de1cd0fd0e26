// The machine at rest: what one server still does behind its answers, as a snapshot or a rewritten log, would
// be counted against the next.
#pragma once

namespace baton::bench {

// Waits until the processors had next to nothing to do for a while; not for ever.
void wait_for_rest();

}  // namespace baton::bench
