// Instances go, of their own accord or because they fell silent.
#include "core/stream/work_apply.h"

#include "core/stream/deliveries.h"
#include "core/stream/keeper.h"
#include "core/stream/rules.h"

namespace baton::core {
namespace {

using namespace streams;

// All it holds can be claimed by others at once. Whoever was lost may have begun; whoever leaves has not.
void give_back(State& state, Keeper& keeper, Slot instance, bool lost, const Stamp& at) {
  Streams& all = state.streams;
  while (const Slot slot = all.instances[instance].held.head) {
    Stream& stream = all.streams[slot];
    const StreamChange change = keeper.change(slot);
    if (lost) count_deliveries(all, keeper, stream);
    stream.owner = 0;
    stream.lease_until = {};
    stream.outstanding = 0;
    make_ready(stream, ready_from(stream, head_due(all, stream), at.time), at.lsn);
  }
}

}  // namespace

void fact(State& state, const InstancesEvicted& event, const Stamp& at) {
  Keeper keeper(state.streams, state.digest);
  for (const Number number : event.instances) {
    const Slot slot = keeper.recorded_instance(number);
    give_back(state, keeper, slot, true, at);
    const Instance& gone = state.streams.instances[slot];
    const Slot space = state.streams.services[gone.service].space;
    keeper.remember(Tombstone{.id = gone.id, .space = space, .since = at.time});
    keeper.remove_instance(slot);
  }
}

void fact(State& state, const InstanceLeft& event, const Stamp& at) {
  Keeper keeper(state.streams, state.digest);
  const Slot slot = keeper.recorded_instance(event.instance);
  give_back(state, keeper, slot, false, at);
  keeper.remove_instance(slot);
}

}  // namespace baton::core
