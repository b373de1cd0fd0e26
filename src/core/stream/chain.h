// A list threaded through the `prev` and `next` of what a slab holds.
#pragma once

#include "base/paged.h"
#include "core/ids.h"

namespace baton::core {

struct Chain {
  Slot head = 0;
  Slot tail = 0;
};

template <class T>
void link_back(Slab<T>& slab, Chain& chain, Slot slot) {
  slab[slot].prev = chain.tail;
  slab[slot].next = 0;
  (chain.tail == 0 ? chain.head : slab[chain.tail].next) = slot;
  chain.tail = slot;
}

// In front of `before`; 0: at the end.
template <class T>
void link_before(Slab<T>& slab, Chain& chain, Slot slot, Slot before) {
  if (before == 0) return link_back(slab, chain, slot);
  const Slot prev = slab[before].prev;
  slab[slot].prev = prev;
  slab[slot].next = before;
  slab[before].prev = slot;
  (prev == 0 ? chain.head : slab[prev].next) = slot;
}

template <class T>
void unlink(Slab<T>& slab, Chain& chain, Slot slot) {
  const Slot prev = slab[slot].prev, next = slab[slot].next;
  (prev == 0 ? chain.head : slab[prev].next) = next;
  (next == 0 ? chain.tail : slab[next].prev) = prev;
  slab[slot].prev = slab[slot].next = 0;
}

}  // namespace baton::core
