#include "core/worker/roster.h"

#include <algorithm>
#include <string_view>

namespace baton::core {
namespace {

// A place in the roster: slots of holders come first, then those of the registry.
struct Place {
  bool among_holders = true;
  Slot slot = 1;

  static Place of(std::uint64_t cursor) {
    if (cursor == 0) return {};
    return {.among_holders = cursor % 2 == 0, .slot = static_cast<Slot>(cursor / 2)};
  }
  std::uint64_t cursor() const { return std::uint64_t{slot} * 2 + (among_holders ? 0 : 1); }
};

// The part behind the namespace; nothing if it is in another one, or of a slot that is not used.
std::string_view name_in(std::string_view ns, std::string_view scoped) {
  const bool within = scoped.size() > ns.size() && scoped.starts_with(ns) && scoped[ns.size()] == ' ';
  return within ? scoped.substr(ns.size() + 1) : std::string_view();
}

WorkerView view_of(std::string_view name, std::uint32_t leases, const Worker* known, Instant now) {
  WorkerView view{.name = std::string(name), .leases = leases};
  if (known == nullptr) return view;
  view.capabilities = known->capabilities.joined();
  view.capacity = known->capacity;
  view.silent_for = now - known->last_seen;
  return view;
}

}  // namespace

WorkerPage workers(const State& state, const WorkerRegistry& registry, const ListWorkers& query,
                   Instant now) {
  WorkerPage page;
  const std::size_t wanted = std::clamp<std::size_t>(query.count_max, 1, kListWorkersMax);
  std::size_t examined = 0;
  for (Place at = Place::of(query.from);; ++at.slot) {
    if (at.among_holders && at.slot >= state.holders.end()) at = {.among_holders = false, .slot = 1};
    if (!at.among_holders && at.slot >= registry.end()) return page;
    if (page.workers.size() == wanted || ++examined > kListWorkersExaminedMax) {
      page.next = at.cursor();
      return page;
    }
    const std::string_view scoped = at.among_holders ? state.holders[at.slot].name : registry[at.slot].name;
    const std::string_view name = name_in(query.ns, scoped);
    if (name.empty()) continue;
    if (at.among_holders) {
      const Worker* known = registry.find(query.ns, name);
      page.workers.push_back(view_of(name, state.holders[at.slot].leases, known, now));
    } else if (state.holder_names.find(scoped) == 0) {
      page.workers.push_back(view_of(name, 0, &registry[at.slot], now));
    }
  }
}

}  // namespace baton::core
