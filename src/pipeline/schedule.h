// Which module may begin next. It knows neither clocks nor threads nor machines: it is told what has begun
// and how it ended, and says what follows.
//
// Whatever is shared by all machines is taken here: locks, places in pools, the right to be alone. A module
// that has to wait for one of them stands aside, in order. When it is given back, the first of those that
// stand there is looked at, and the next only if that one begins: so looking for the next module stays cheap
// however many wait.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/graph.h"

namespace baton::pipeline {

// How long modules took before, by id.
using History = std::map<std::string, Duration>;

// Modules that the same machines can run.
struct Lane {
  std::vector<std::string> capabilities;  // with what reservation.h adds
  bool pinned = false;
  Hint hint = Hint::none;
  std::vector<std::string> preferred;  // by whoever has them too, if one of those has time
  friend auto operator<=>(const Lane&, const Lane&) = default;
};
Lane lane_of(const GraphNode& node);
// For those alone who have what is preferred.
Lane as_preferred(const Lane& lane);

// Why a run is stopped by the end of a module: "build failed". A coordinator keeps nothing else of it, so by
// these words the next master tells it from a cancellation.
std::string stop_reason_of(const GraphNode& node, ModuleStatus ended);
bool is_of_a_module(const Graph& graph, const std::string& stop_reason);

// A module that is over, whether or not it ever began.
struct Ended {
  NodeIndex node;
  ModuleStatus status;
  std::string reason;
  friend bool operator==(const Ended&, const Ended&) = default;
};

class Schedule {
 public:
  // The graph outlives the schedule.
  explicit Schedule(const Graph& graph, const History& history = {});

  // The best of those that may begin, among lanes that fit: by priority, then by how long the way from it to
  // the end of the run is, then as declared. It counts as begun.
  std::optional<NodeIndex> begin_next(const std::function<bool(const Lane&)>& fits);
  // It has begun before anybody could ask us, with all that it shares; it may be over as well.
  void take_over(NodeIndex node);
  void put_back(NodeIndex node);   // it has not begun after all
  void keep_here(NodeIndex node);  // likewise, and from now on it is as if it were pinned
  // It is over. A failure may stop the run, as the definition says.
  void finish(NodeIndex node, ModuleStatus status, std::string reason = {});
  // Nothing begins any more but what always runs; what has begun is for the caller to stop.
  void stop(const std::string& reason);

  ModuleStatus status(NodeIndex node) const { return nodes_[node].status; }
  const std::string& reason(NodeIndex node) const { return nodes_[node].reason; }
  void note_status(NodeIndex node, ModuleStatus status);  // one that is not final
  bool is_stopping() const { return stopping_; }
  const std::string& stop_reason() const { return stop_reason_; }
  bool is_over() const { return open_ == 0; }
  std::size_t begun() const { return begun_; }
  std::size_t finished() const { return nodes_.size() - open_; }

  // All that ended since this was last asked.
  std::vector<Ended> take_ended() { return std::exchange(ended_, {}); }
  // All that became ready since this was last asked, whether or not it still is.
  std::vector<NodeIndex> take_ready() { return std::exchange(made_ready_, {}); }
  // Modules that are ready, in lanes that are of interest.
  void each_ready(const std::function<bool(const Lane&)>& of_interest,
                  const std::function<void(NodeIndex)>& tell) const;
  // What a ready module waits for besides a free machine: "lock 'release', which publish has". Empty:
  // nothing.
  std::string held_up_by(NodeIndex node) const;

 private:
  struct State {
    ModuleStatus status = ModuleStatus::waiting;
    std::string reason;
    std::uint32_t open_needs = 0;  // modules that are not over
    std::uint32_t lane = 0;
    std::int64_t path_ms = 0;  // from its beginning to the end of the run
    std::string aside_for;     // a key of its lane's `aside`
  };
  struct Rank {
    Priority priority;
    std::int64_t path_ms;
    NodeIndex node;
    friend bool operator<(const Rank& a, const Rank& b) {
      if (a.priority != b.priority) return a.priority > b.priority;
      if (a.path_ms != b.path_ms) return a.path_ms > b.path_ms;
      return a.node < b.node;
    }
  };
  struct LaneState {
    Lane lane;
    std::set<Rank> ready;
    std::map<std::string, std::set<Rank>> aside;  // ready too, and something that is shared was not free
  };

  const ModuleSpec& spec(NodeIndex node) const { return *graph_.nodes()[node].spec; }
  Rank rank(NodeIndex node) const { return {spec(node).priority, nodes_[node].path_ms, node}; }
  void make_ready(NodeIndex node);
  void unready(NodeIndex node);
  void resolve(NodeIndex node);
  void end(NodeIndex node, ModuleStatus status, std::string reason);
  void settle();
  std::string obstacle(NodeIndex node) const;
  void take_shared(NodeIndex node);
  void give_back_shared(NodeIndex node);
  // The best of a lane, with the key that it stood aside for.
  struct Candidate {
    Rank rank;
    std::string key;
  };
  std::optional<Candidate> best_of(const LaneState& lane) const;
  void stand_aside(NodeIndex node, const std::string& key);
  bool is_awaited(const std::string& key) const;
  void give_back(const std::string& key);

  const Graph& graph_;
  std::vector<State> nodes_;
  std::vector<LaneState> lanes_;
  // Of what was taken over several may have what is one's alone: those that have ended, as it will turn out,
  // and the one that has it now.
  std::map<std::string, std::uint64_t> taken_places_;
  std::map<std::string, std::set<NodeIndex>> locked_by_;
  std::set<NodeIndex> alone_;
  std::set<std::string> given_back_;  // keys: what stands aside for one of them may begin
  std::size_t begun_ = 0;
  std::size_t open_ = 0;
  bool stopping_ = false;
  std::string stop_reason_;
  std::vector<Ended> ended_;
  std::vector<NodeIndex> made_ready_;
  std::vector<NodeIndex> unsettled_;  // ended, and those that need them do not know yet
};

}  // namespace baton::pipeline
