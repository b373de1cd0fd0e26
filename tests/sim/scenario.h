// What one run of the simulation does, written out: the knobs of the world and a list of items, each of which
// happens once so many steps were taken. A seed only makes a scenario; the scenario alone decides the run, so
// it can be stored, read by people, and shrunk.
//
//   seed 17
//   knob ttl_ms 400
//   at 120 power_cut 50 0 8812309
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton::sim {

enum class Knob : std::uint8_t {
  mode,  // see Mode
  steps,
  segment_bytes,
  batch_bytes,
  digest_every,
  snapshot_bytes,  // of sealed log between two snapshots
  retention_count,
  retention_ms,
  tasks_max,
  max_attempts,
  due_per_turn,
  ttl_ms,
  poll_ms,       // how often an idle worker asks
  fail_percent,  // of the leases, by workers
  queues,
  keys,
  capabilities,
  payload_bytes,
  cache_bytes,
  reconfigured,  // 1: every other process runs with other sizes and limits
  clients,
  honest,  // workers of each kind
  crashing,
  stalling,
  doubling,
  lying,
  net_delay_ms,
  lost_permille,         // requests
  lost_answer_permille,  // half-open: the request arrives, the answer does not
  doubled_permille,
  flush_ms,
  drift_ppm,  // 1000 is none
  instances,  // that share streams
  count,
};
inline constexpr std::size_t kKnobs = static_cast<std::size_t>(Knob::count);

// What the disk is allowed to do to us, and so what has to hold.
enum class Mode : std::uint8_t {
  honest,  // every acknowledged entry survives
  lying,   // syncs that did nothing: loss is legal, contradiction is not
  rotting  // bits flip on copies of the disk: refused, or the very same state
};

enum class ItemKind : std::uint8_t {
  // What clients ask. a: queue; b: key, 0 for none.
  submit,
  cancel,
  requeue,
  pause,
  resume,
  purge,
  probe,     // a: operation, b: relation of the lease to the task; see coverage.h
  snapshot,  // the housekeeper starts now
  // The process and the machine.
  kill,                   // the process ends, the machine goes on
  power_cut,              // a: percent of what is pending that survives
  power_cut_within,       // a: disk operations from now, b: percent
  power_cut_in_recovery,  // a: operations into the next recovery, b: percent
  stop,                   // cleanly
  stall,                  // a: milliseconds in which the coordinator does nothing
  // The disk.
  failing_sync,       // a: syncs from now, b: 0 the cache keeps the new content, 1 it drops it
  failing_operation,  // a: operations from now
  lie,                // syncs do nothing from now to the next crash
  disk_full,          // a: bytes left
  disk_free,
  unreadable,  // one file cannot be read until `readable`
  readable,
  rot,
  slow_flush,  // a: milliseconds
  // The clock and the network.
  wall_jump,  // a: milliseconds, b: 1 backwards
  cut_off,    // a: party, b: 1 nothing arrives, 2 no answer arrives, 0 healed
  forge,      // the canary: an answer is made up that the log knows nothing of; the checks have to notice
  count,
};
inline constexpr std::size_t kItemKinds = static_cast<std::size_t>(ItemKind::count);
std::string_view name_of(ItemKind kind);
std::string_view name_of(Knob knob);
std::uint64_t simplest(Knob knob);  // what shrinking tries first

struct Item {
  std::uint64_t at = 0;  // steps taken before it
  ItemKind kind = ItemKind::submit;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t salt = 0;  // all details it leaves open
  friend bool operator==(const Item&, const Item&) = default;
};

struct Scenario {
  std::uint64_t seed = 0;
  std::array<std::uint64_t, kKnobs> knobs{};
  std::vector<Item> items;  // by `at`

  std::uint64_t operator[](Knob knob) const { return knobs[static_cast<std::size_t>(knob)]; }
  std::uint64_t& operator[](Knob knob) { return knobs[static_cast<std::size_t>(knob)]; }
  Mode mode() const { return static_cast<Mode>((*this)[Knob::mode]); }
  friend bool operator==(const Scenario&, const Scenario&) = default;
};

void sort_by_step(std::vector<Item>& items);  // keeps the order of those at the same step
std::string to_text(const Scenario& scenario);
Result<Scenario> parse_scenario(std::string_view text);

Scenario scenario_for(std::uint64_t seed);  // generator.cc
// Fails whatever the code does, or else the checks are blind.
Scenario canary();

}  // namespace baton::sim
