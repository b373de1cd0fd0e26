// Deliveries that end without a report: with a lost lease, or with whoever had them.
#pragma once

#include "core/stream/keeper.h"

namespace baton::core::streams {

void count_deliveries(Streams& all, Keeper& keeper, const Stream& of);

}  // namespace baton::core::streams
