// What happened in each queue since the start. The first kQueuesMax in which anything happens are counted one
// by one, and all others together, so that users who make queues up do not make the page of metrics grow.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/apply.h"
#include "core/event.h"
#include "core/state.h"

namespace baton::server {

class QueueCounts {
 public:
  static constexpr std::size_t kQueuesMax = 1000;
  static constexpr std::array<std::string_view, 6> kWhat = {"created",   "leased", "expired",
                                                            "completed", "failed", "dead"};
  struct Counts {
    std::string ns;
    std::string queue;
    std::array<std::uint64_t, kWhat.size()> of{};  // in the order of kWhat
  };

  explicit QueueCounts(const core::State& state) : state_(state) {}

  void recorded(const core::Event& event, const core::Stamp& stamp);  // and applied
  const std::vector<Counts>& each() const { return each_; }
  const Counts& others() const { return others_; }

 private:
  Counts& counts_of(core::Slot queue);

  const core::State& state_;
  std::vector<Counts> each_;
  Counts others_;
  std::unordered_map<std::string, std::uint32_t> places_;  // in each_, by namespace and name
  std::vector<std::uint32_t> last_places_;                 // by the queue's slot; where it was the last time
};

}  // namespace baton::server
