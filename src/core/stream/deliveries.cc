#include "core/stream/deliveries.h"

#include "base/mutant.h"

namespace baton::core::streams {

void count_deliveries(Streams& all, Keeper& keeper, const Stream& of) {
  if (mutant(Mutant::m35_lost_delivery_not_counted)) return;
  for (Slot slot = of.messages.head; slot != 0 && of.owner != 0; slot = all.messages[slot].next) {
    Message& message = all.messages[slot];
    if (message.seq > of.given_seq) break;
    if (!is_out(of, message)) continue;
    const auto rewriting = keeper.rewrite(message);
    ++message.deliveries;
  }
}

}  // namespace baton::core::streams
