// Everyone who works: first whoever holds a lease, which the log knows, then whoever else has been heard of
// lately, which the registry knows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/state.h"
#include "core/worker/worker_registry.h"

namespace baton::core {

inline constexpr std::size_t kListWorkersMax = 1000;            // workers one page holds
inline constexpr std::size_t kListWorkersExaminedMax = 20'000;  // looked at to fill it

struct WorkerView {
  std::string name;
  std::string capabilities;
  std::uint32_t capacity = 0;  // leases it wants at once; 0: it did not say
  std::uint32_t leases = 0;
  std::optional<Duration> silent_for;  // none: not heard of since the start, or for too long
};

struct ListWorkers {
  std::string ns;
  std::uint64_t from = 0;  // cursor, as the page before said
  std::size_t count_max = 100;
};
struct WorkerPage {
  std::vector<WorkerView> workers;
  std::uint64_t next = 0;  // where to go on, 0 at the end
};

// A page may be empty and not the last. Who takes or ends a lease between two pages may be on both or
// neither.
WorkerPage workers(const State& state, const WorkerRegistry& registry, const ListWorkers& query, Instant now);

}  // namespace baton::core
