#include "tests/sim/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <sstream>

namespace baton::sim {
namespace {

struct KnobName {
  std::string_view name;
  std::uint64_t simplest;
};

constexpr std::array<KnobName, kKnobs> kKnobNames{{
    {"mode", 0},
    {"steps", 2000},
    {"segment_bytes", 65536},
    {"batch_bytes", 4096},
    {"digest_every", 64},
    {"snapshot_bytes", 131072},
    {"retention_count", 1000},
    {"retention_ms", 3600000},
    {"tasks_max", 60},
    {"max_attempts", 20},
    {"due_per_turn", 1024},
    {"ttl_ms", 500},
    {"poll_ms", 50},
    {"fail_percent", 20},
    {"queues", 1},
    {"keys", 4},
    {"capabilities", 0},
    {"payload_bytes", 64},
    {"cache_bytes", 65536},
    {"reconfigured", 0},
    {"clients", 1},
    {"honest", 1},
    {"crashing", 0},
    {"stalling", 0},
    {"doubling", 0},
    {"lying", 0},
    {"net_delay_ms", 1},
    {"lost_permille", 0},
    {"lost_answer_permille", 0},
    {"doubled_permille", 0},
    {"flush_ms", 1},
    {"drift_ppm", 1000},
    {"instances", 0},
}};

constexpr std::array<std::string_view, kItemKinds> kItemNames{{
    "submit",
    "cancel",
    "requeue",
    "pause",
    "resume",
    "purge",
    "probe",
    "snapshot",
    "kill",
    "power_cut",
    "power_cut_within",
    "power_cut_in_recovery",
    "stop",
    "stall",
    "failing_sync",
    "failing_operation",
    "lie",
    "disk_full",
    "disk_free",
    "unreadable",
    "readable",
    "rot",
    "slow_flush",
    "wall_jump",
    "cut_off",
    "forge",
}};

}  // namespace

std::string_view name_of(ItemKind kind) { return kItemNames[static_cast<std::size_t>(kind)]; }
std::string_view name_of(Knob knob) { return kKnobNames[static_cast<std::size_t>(knob)].name; }
std::uint64_t simplest(Knob knob) { return kKnobNames[static_cast<std::size_t>(knob)].simplest; }

void sort_by_step(std::vector<Item>& items) {
  std::multimap<std::uint64_t, Item> by_step;  // those with equal keys stay in order
  for (const Item& item : items) by_step.emplace(item.at, item);
  items.clear();
  for (const auto& [step, item] : by_step) items.push_back(item);
}

std::string to_text(const Scenario& scenario) {
  fmt::memory_buffer out;
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "seed {}\n", scenario.seed);
  for (std::size_t i = 0; i < kKnobs; ++i) {
    fmt::format_to(to, "knob {} {}\n", kKnobNames[i].name, scenario.knobs[i]);
  }
  for (const Item& item : scenario.items) {
    fmt::format_to(to, "at {} {} {} {} {}\n", item.at, name_of(item.kind), item.a, item.b, item.salt);
  }
  return fmt::to_string(out);
}

Result<Scenario> parse_scenario(std::string_view text) {
  Scenario scenario;
  for (std::size_t i = 0; i < kKnobs; ++i) scenario.knobs[i] = kKnobNames[i].simplest;
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const auto wrong = [&] {
      return failure(Errc::invalid_request, fmt::format("line {} makes no sense: {}", number, line));
    };
    std::istringstream in(line);
    std::string word, name;
    if (!(in >> word) || word.starts_with('#')) continue;
    if (word == "seed") {
      if (!(in >> scenario.seed)) return wrong();
    } else if (word == "knob") {
      std::uint64_t value = 0;
      if (!(in >> name >> value)) return wrong();
      const auto found = std::ranges::find(kKnobNames, name, &KnobName::name);
      if (found == kKnobNames.end()) return wrong();
      scenario.knobs[static_cast<std::size_t>(found - kKnobNames.begin())] = value;
    } else if (word == "at") {
      Item item;
      if (!(in >> item.at >> name >> item.a >> item.b >> item.salt)) return wrong();
      const auto found = std::ranges::find(kItemNames, name);
      if (found == kItemNames.end()) return wrong();
      item.kind = static_cast<ItemKind>(found - kItemNames.begin());
      scenario.items.push_back(item);
    } else {
      return wrong();
    }
  }
  sort_by_step(scenario.items);
  return scenario;
}

Scenario canary() {
  Scenario scenario;
  for (std::size_t i = 0; i < kKnobs; ++i) scenario.knobs[i] = kKnobNames[i].simplest;
  scenario.items = {{.at = 50, .kind = ItemKind::submit, .salt = 7},
                    {.at = 500, .kind = ItemKind::forge},
                    {.at = 501, .kind = ItemKind::power_cut}};
  return scenario;
}

}  // namespace baton::sim
