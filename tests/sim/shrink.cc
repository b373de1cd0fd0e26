#include "tests/sim/shrink.h"

#include <algorithm>

#include "tests/sim/world.h"

namespace baton::sim {
namespace {

class Shrinker {
 public:
  Shrinker(Scenario scenario, std::string id, std::uint64_t runs_max)
      : best_(std::move(scenario)), id_(std::move(id)), runs_max_(runs_max) {}

  Shrunk shrink() {
    for (bool smaller = true; smaller && runs_ < runs_max_;) {
      smaller = drop_items();
      smaller |= plain_knobs();
    }
    return {std::move(best_), runs_};
  }

 private:
  bool still_fails(const Scenario& candidate) {
    if (runs_ >= runs_max_) return false;
    ++runs_;
    const Run result = run(candidate);
    if (!result.violation || result.violation->id != id_) return false;
    best_ = candidate;
    return true;
  }

  // ddmin: leaves out pieces, large ones first.
  bool drop_items() {
    const std::size_t before = best_.items.size();
    for (std::size_t piece = std::max<std::size_t>(best_.items.size() / 2, 1); piece > 0; piece /= 2) {
      for (std::size_t begin = 0; begin < best_.items.size();) {
        Scenario candidate = best_;
        const auto from = candidate.items.begin() + static_cast<std::ptrdiff_t>(begin);
        candidate.items.erase(
            from, from + static_cast<std::ptrdiff_t>(std::min(piece, best_.items.size() - begin)));
        if (!still_fails(candidate)) begin += piece;
      }
    }
    return best_.items.size() < before;
  }

  bool plain_knobs() {
    bool plainer = false;
    for (std::size_t i = 0; i < kKnobs; ++i) {
      const auto knob = static_cast<Knob>(i);
      if (knob == Knob::mode || best_[knob] == simplest(knob)) continue;
      Scenario candidate = best_;
      candidate[knob] = simplest(knob);
      const std::uint64_t most = (candidate[Knob::segment_bytes] - 8192) / 2 - 256;
      if (candidate[Knob::batch_bytes] > most ||
          candidate[Knob::payload_bytes] + 900 > candidate[Knob::batch_bytes])
        continue;
      plainer |= still_fails(candidate);
    }
    if (best_[Knob::steps] > 200) {
      Scenario candidate = best_;
      candidate[Knob::steps] = candidate.items.empty() ? 100 : candidate.items.back().at + 100;
      if (candidate[Knob::steps] < best_[Knob::steps]) plainer |= still_fails(candidate);
    }
    return plainer;
  }

  Scenario best_;
  const std::string id_;
  const std::uint64_t runs_max_;
  std::uint64_t runs_ = 0;
};

}  // namespace

Shrunk shrink(Scenario scenario, const std::string& id, std::uint64_t runs_max) {
  return Shrinker(std::move(scenario), id, runs_max).shrink();
}

}  // namespace baton::sim
