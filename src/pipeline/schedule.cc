#include "pipeline/schedule.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "pipeline/reservation.h"
#include "pipeline/verdict.h"

namespace baton::pipeline {
namespace {

constexpr Duration kUnknownEstimate = seconds(1);

bool has_begun(ModuleStatus status) {
  return status == ModuleStatus::queued || status == ModuleStatus::running;
}
bool is_ready(ModuleStatus status) {
  return status == ModuleStatus::ready || status == ModuleStatus::waiting_for_capability;
}

}  // namespace

Lane lane_of(const GraphNode& node) {
  return {required_of_workers(node.capabilities), node.spec->pinned, node.spec->hint,
          canonical(node.spec->preferred)};
}

Lane as_preferred(const Lane& lane) {
  Lane strict = lane;
  strict.capabilities.insert(strict.capabilities.end(), lane.preferred.begin(), lane.preferred.end());
  strict.capabilities = canonical(std::move(strict.capabilities));
  strict.preferred.clear();
  return strict;
}

std::string stop_reason_of(const GraphNode& node, ModuleStatus ended) {
  return node.id + " " + std::string(ending(ended));
}

bool is_of_a_module(const Graph& graph, const std::string& stop_reason) {
  return std::ranges::any_of(graph.nodes(), [&](const GraphNode& node) {
    return stop_reason == stop_reason_of(node, ModuleStatus::failed) ||
           stop_reason == stop_reason_of(node, ModuleStatus::timed_out) ||
           stop_reason == stop_reason_of(node, ModuleStatus::cancelled);
  });
}

Schedule::Schedule(const Graph& graph, const History& history)
    : graph_(graph), nodes_(graph.size()), open_(graph.size()) {
  std::map<Lane, std::uint32_t> lanes;
  for (NodeIndex index = 0; index < nodes_.size(); ++index) {
    const GraphNode& node = graph[index];
    const Lane lane = lane_of(node);
    const auto [known, is_new] = lanes.try_emplace(lane, static_cast<std::uint32_t>(lanes_.size()));
    if (is_new) lanes_.push_back({lane, {}});
    nodes_[index].lane = known->second;
    for (const NodeIndex other : node.dependants) ++nodes_[other].open_needs;
  }
  for (auto index = graph.in_order().rbegin(); index != graph.in_order().rend(); ++index) {
    const GraphNode& node = graph[*index];
    const auto known = history.find(node.id);
    Duration estimate = known != history.end() ? known->second : node.spec->estimate;
    if (estimate <= Duration{}) estimate = kUnknownEstimate;
    std::int64_t longest = 0;
    for (const NodeIndex other : node.dependants) longest = std::max(longest, nodes_[other].path_ms);
    nodes_[*index].path_ms = estimate.ms + longest;
  }
  for (const NodeIndex index : graph.in_order()) {
    if (graph[index].left_out && !is_final(nodes_[index].status))
      end(index, ModuleStatus::skipped, "left out of this run");
    else if (nodes_[index].open_needs == 0 && nodes_[index].status == ModuleStatus::waiting)
      make_ready(index);
  }
  settle();
}

void Schedule::make_ready(NodeIndex node) {
  nodes_[node].status = ModuleStatus::ready;
  lanes_[nodes_[node].lane].ready.insert(rank(node));
  made_ready_.push_back(node);
}

// Wherever it stands, it stands there no longer.
void Schedule::unready(NodeIndex node) {
  LaneState& lane = lanes_[nodes_[node].lane];
  lane.ready.erase(rank(node));
  const std::string key = std::exchange(nodes_[node].aside_for, {});
  if (key.empty()) return;
  lane.aside[key].erase(rank(node));
  if (lane.aside[key].empty()) lane.aside.erase(key);
  if (!is_awaited(key)) given_back_.erase(key);
}

bool Schedule::is_awaited(const std::string& key) const {
  return std::ranges::any_of(lanes_, [&](const LaneState& lane) { return lane.aside.contains(key); });
}

void Schedule::give_back(const std::string& key) {
  if (is_awaited(key)) given_back_.insert(key);
}

void Schedule::stand_aside(NodeIndex node, const std::string& key) {
  nodes_[node].aside_for = key;
  lanes_[nodes_[node].lane].aside[key].insert(rank(node));
  given_back_.erase(key);
}

std::optional<Schedule::Candidate> Schedule::best_of(const LaneState& lane) const {
  std::optional<Candidate> best;
  const auto consider = [&](const std::set<Rank>& ranks, const std::string& key) {
    if (!ranks.empty() && (!best || *ranks.begin() < best->rank)) best = {*ranks.begin(), key};
  };
  consider(lane.ready, {});
  for (const std::string& key : given_back_) {
    if (const auto aside = lane.aside.find(key); aside != lane.aside.end()) consider(aside->second, key);
  }
  return best;
}

std::optional<NodeIndex> Schedule::begin_next(const std::function<bool(const Lane&)>& fits) {
  if (!alone_.empty()) return std::nullopt;
  for (;;) {
    std::optional<Candidate> best;
    for (const LaneState& lane : lanes_) {
      if ((lane.ready.empty() && lane.aside.empty()) || !fits(lane.lane)) continue;
      if (auto one = best_of(lane); one && (!best || one->rank < best->rank)) best = std::move(one);
    }
    if (!best) return std::nullopt;
    const NodeIndex node = best->rank.node;
    // Whoever wants to be alone would wait for ever if others could pass.
    if (spec(node).alone && begun_ > 0) return std::nullopt;

    unready(node);
    if (const std::string key = obstacle(node); !key.empty()) {
      stand_aside(node, key);
      continue;
    }
    take_shared(node);
    nodes_[node].status = ModuleStatus::queued;
    ++begun_;
    return node;
  }
}

void Schedule::take_over(NodeIndex node) {
  BATON_CHECK(!is_final(nodes_[node].status) && !has_begun(nodes_[node].status));
  unready(node);
  take_shared(node);
  nodes_[node].status = ModuleStatus::queued;
  ++begun_;
}

// The first lock or pool that is taken, as a key.
std::string Schedule::obstacle(NodeIndex node) const {
  for (const std::string& lock : spec(node).locks) {
    if (locked_by_.contains(lock)) return "lock " + lock;
  }
  const std::string& pool = spec(node).pool;
  if (pool.empty()) return {};
  const auto taken = taken_places_.find(pool);
  const std::uint64_t before = taken == taken_places_.end() ? 0 : taken->second;
  return before + spec(node).weight > graph_.definition().pools.at(pool) ? "pool " + pool : std::string();
}

void Schedule::take_shared(NodeIndex node) {
  for (const std::string& lock : spec(node).locks) locked_by_[lock].insert(node);
  if (!spec(node).pool.empty()) taken_places_[spec(node).pool] += spec(node).weight;
  if (spec(node).alone) alone_.insert(node);
}

void Schedule::give_back_shared(NodeIndex node) {
  --begun_;
  alone_.erase(node);
  for (const std::string& lock : spec(node).locks) {
    std::set<NodeIndex>& holders = locked_by_[lock];  // none, if it is named twice
    holders.erase(node);
    if (!holders.empty()) continue;
    locked_by_.erase(lock);
    give_back("lock " + lock);
  }
  if (!spec(node).pool.empty()) {
    taken_places_.at(spec(node).pool) -= spec(node).weight;
    give_back("pool " + spec(node).pool);
  }
}

void Schedule::put_back(NodeIndex node) {
  BATON_CHECK(has_begun(nodes_[node].status));
  give_back_shared(node);
  if (stopping_ && !spec(node).always_run)
    end(node, ModuleStatus::cancelled, stop_reason_);
  else
    make_ready(node);
  settle();
}

void Schedule::keep_here(NodeIndex node) {
  Lane here = lane_of(graph_[node]);
  here.pinned = true;
  here.preferred.clear();
  const auto known = std::ranges::find(lanes_, here, &LaneState::lane);
  nodes_[node].lane = static_cast<std::uint32_t>(known - lanes_.begin());
  if (known == lanes_.end()) lanes_.push_back({std::move(here), {}});
  put_back(node);
}

void Schedule::note_status(NodeIndex node, ModuleStatus status) {
  BATON_CHECK(!is_final(nodes_[node].status) && !is_final(status));
  nodes_[node].status = status;
}

void Schedule::finish(NodeIndex node, ModuleStatus status, std::string reason) {
  BATON_CHECK(is_final(status) && !is_final(nodes_[node].status));
  if (has_begun(nodes_[node].status)) give_back_shared(node);
  unready(node);
  const bool stops = spoils_run(status) && graph_.definition().on_failure == OnFailure::stop && !stopping_;
  const std::string why = stop_reason_of(graph_[node], status);
  end(node, status, std::move(reason));
  if (stops) stop(why);
  settle();
}

void Schedule::end(NodeIndex node, ModuleStatus status, std::string reason) {
  nodes_[node].status = status;
  nodes_[node].reason = reason;
  --open_;
  ended_.push_back({node, status, std::move(reason)});
  unsettled_.push_back(node);
}

// One end brings about others, along chains of any length.
void Schedule::settle() {
  while (!unsettled_.empty()) {
    const NodeIndex node = unsettled_.back();
    unsettled_.pop_back();
    for (const NodeIndex other : graph_[node].dependants) {
      State& state = nodes_[other];
      if (--state.open_needs == 0 && state.status == ModuleStatus::waiting) resolve(other);
    }
  }
}

void Schedule::resolve(NodeIndex node) {
  const Verdict verdict = verdict_on(graph_, node, [this](NodeIndex other) { return status(other); });
  switch (verdict.kind) {
    case Verdict::skip: return end(node, ModuleStatus::skipped, verdict.reason);
    case Verdict::cancel:
      return end(node, ModuleStatus::cancelled, stopping_ ? stop_reason_ : verdict.reason);
    case Verdict::fail: return end(node, ModuleStatus::dependency_failed, verdict.reason);
    case Verdict::run: break;
  }
  if (stopping_ && !spec(node).always_run) return end(node, ModuleStatus::cancelled, stop_reason_);
  make_ready(node);
}

void Schedule::stop(const std::string& reason) {
  if (stopping_) return;
  stopping_ = true;
  stop_reason_ = reason;
  for (const NodeIndex node : graph_.in_order()) {
    const ModuleStatus current = status(node);
    if (is_final(current) || has_begun(current) || spec(node).always_run) continue;
    unready(node);
    const std::string cause = failure_before(graph_, node, [this](NodeIndex other) { return status(other); });
    if (cause.empty())
      end(node, ModuleStatus::cancelled, reason);
    else
      end(node, ModuleStatus::dependency_failed, cause);
  }
  settle();
}

void Schedule::each_ready(const std::function<bool(const Lane&)>& of_interest,
                          const std::function<void(NodeIndex)>& tell) const {
  for (const LaneState& lane : lanes_) {
    if ((lane.ready.empty() && lane.aside.empty()) || !of_interest(lane.lane)) continue;
    for (const Rank& one : lane.ready) tell(one.node);
    for (const auto& [key, ranks] : lane.aside) {
      for (const Rank& one : ranks) tell(one.node);
    }
  }
}

std::string Schedule::held_up_by(NodeIndex node) const {
  if (!is_ready(status(node))) return {};
  if (!alone_.empty()) return graph_[*alone_.begin()].id + ", which has to be alone";
  for (const std::string& lock : spec(node).locks) {
    if (const auto holder = locked_by_.find(lock); holder != locked_by_.end()) {
      return "lock '" + lock + "', which " + graph_[*holder->second.begin()].id + " has";
    }
  }
  if (!obstacle(node).empty()) return "a place in pool '" + spec(node).pool + "'";
  if (spec(node).alone && begun_ > 0)
    return "the " + std::to_string(begun_) + " modules that run: it has to be alone";
  return {};
}

}  // namespace baton::pipeline
