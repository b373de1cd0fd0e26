// A service is known as long as something belongs to it, and a namespace as long as a service does.
#include "base/check.h"
#include "core/stream/keeper.h"
#include "core/stream/keys.h"

namespace baton::core::streams {

Slot Keeper::make_space(std::string_view ns) {
  if (const Slot known = all_.space_names.find(ns)) return known;
  const Slot slot = all_.spaces.take();
  all_.spaces[slot].name = ns;
  all_.space_names.insert(ns, slot);
  return slot;
}

Slot Keeper::make_service(std::string_view ns, std::string_view service) {
  if (const Slot known = find_service(all_, ns, service)) return known;
  const Slot slot = all_.services.take();
  Service& made = all_.services[slot];
  made.ns = ns, made.name = service;
  made.space = make_space(ns);
  Space& space = all_.spaces[made.space];
  ++space.services;
  all_.service_names.insert(service_key(ns, service), slot);
  const Slot spare = space.unused_service;
  if (spare != 0 && all_.services[spare].uses == 0) remove_unused(spare);
  return slot;
}

void Keeper::let_go_of_service(Slot slot) {
  BATON_CHECK(all_.services[slot].uses > 0);
  if (--all_.services[slot].uses == 0) remove_unused(slot);
}

void Keeper::let_go_of_space(Slot slot) {
  Space& space = all_.spaces[slot];
  BATON_CHECK(space.uses > 0);
  const Slot spare = space.unused_service;
  if (--space.uses == 0 && spare != 0 && all_.services[spare].uses == 0) remove_unused(spare);
}

// The last of a namespace stays while anything is remembered there: a snapshot names it by a service.
void Keeper::remove_unused(Slot slot) {
  const Service& gone = all_.services[slot];
  const Slot of = gone.space;
  Space& space = all_.spaces[of];
  if (space.services == 1 && space.uses > 0) {
    space.unused_service = slot;
    return;
  }
  if (space.unused_service == slot) space.unused_service = 0;
  all_.service_names.erase(service_key(gone.ns, gone.name));
  all_.services.give_back(slot);
  if (--space.services > 0) return;
  all_.space_names.erase(space.name);
  all_.spaces.give_back(of);
}

}  // namespace baton::core::streams
