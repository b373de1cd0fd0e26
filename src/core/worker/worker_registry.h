// What workers say about themselves. Soft state: it starts empty, fills from heartbeats and leases, may be
// lost at any time, and influences only which request gets a task now. What a worker holds is in the log, not
// here.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/paged.h"
#include "base/time.h"
#include "core/name_map.h"
#include "core/names.h"
#include "core/stream/presence.h"

namespace baton::core {

struct Worker {
  std::string name;  // with its namespace
  Instant last_seen;
  std::uint32_t capacity = 0;  // leases it wants at once; 0: it did not say
  Capabilities capabilities;
  Slot next = 0;
};

class WorkerRegistry {
 public:
  // Workers beyond the limit, or without a proper name, are not remembered; nothing but the quality of
  // scheduling depends on it.
  void heartbeat(std::string_view ns, std::string_view worker, std::uint32_t capacity,
                 Capabilities capabilities, Instant now);
  // It asked for work, which shows that it is there and what it can do.
  void asked_for_work(std::string_view ns, std::string_view worker, const Capabilities& capabilities,
                      Instant now);
  void forget_silent_since(Instant then);

  const Worker* find(std::string_view ns, std::string_view worker) const;
  std::size_t size() const { return workers_.used(); }
  Slot end() const { return workers_.end(); }                           // every slot in use is below this one
  const Worker& operator[](Slot slot) const { return workers_[slot]; }  // without a name: not in use

  // How many more leases the worker would like, given how many it holds.
  std::uint32_t spare_capacity(std::string_view ns, std::string_view worker,
                               std::uint32_t active_leases) const;

  Presence instances;  // of services that share streams

 private:
  Worker* saw(std::string_view ns, std::string_view worker, Instant now);

  Slab<Worker> workers_;
  NameMap names_;
};

}  // namespace baton::core
