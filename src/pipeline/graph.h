// The modules of one run: a matrix is spread into its instances, needs are edges, and all of it makes sense.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/codec.h"
#include "pipeline/graph_parts.h"
#include "pipeline/module.h"
#include "pipeline/pipeline.h"
#include "pipeline/problem.h"

namespace baton::pipeline {

using NodeIndex = std::uint32_t;

// Which modules are to run. Those chosen bring along what they require.
struct Selection {
  std::vector<std::string> modules;       // empty: all
  std::vector<std::string> categories;    // empty: all
  std::vector<std::string> skip_modules;  // count as skipped
  std::vector<std::string> skip_categories;
};
BATON_FIELDS(Selection, modules, categories, skip_modules, skip_categories)

struct GraphNeed {
  NeedKind kind = NeedKind::required;
  bool takes_value = false;
  std::vector<NodeIndex> on;  // in the order of the targets; none: not part of this run
};

struct GraphNode {
  const ModuleSpec* spec = nullptr;
  std::string id;                         // test[linux]
  const Target* target = nullptr;         // of a matrix
  std::vector<std::string> capabilities;  // in lower case and in order
  std::vector<GraphNeed> needs;           // as many as the module declares
  std::vector<NodeIndex> dependants;      // each once
  bool left_out = false;                  // by the selection
};

inline constexpr std::size_t kNodesMax = 100'000;

class Graph {
 public:
  // The definition outlives the graph. All that is wrong is told, not only the first thing.
  static std::expected<Graph, std::vector<Problem>> of(const Definition& definition,
                                                       const Selection& selection = {});

  const Definition& definition() const { return *definition_; }
  std::size_t size() const { return nodes_.size(); }
  const GraphNode& operator[](NodeIndex index) const { return nodes_[index]; }
  const std::vector<GraphNode>& nodes() const { return nodes_; }
  const NodeIndex* find(std::string_view id) const;
  // Every node after all that it needs.
  const std::vector<NodeIndex>& in_order() const { return order_; }

  // Of what has to be the same on all machines: modules, needs, targets and the form of results.
  std::uint64_t fingerprint() const;
  GraphParts parts() const;  // likewise, apart

 private:
  Graph() = default;
  friend class GraphMaker;

  const Definition* definition_ = nullptr;
  std::vector<GraphNode> nodes_;
  std::map<std::string, NodeIndex, std::less<>> by_id_;
  std::vector<NodeIndex> order_;
};

// 1 to 128 printable ASCII characters without spaces.
bool is_capability(std::string_view name);
// In lower case, in order, each once: capabilities are compared so.
std::vector<std::string> canonical(std::vector<std::string> capabilities);
// Whether all that is needed is offered; both canonical.
bool covers(const std::vector<std::string>& offered, const std::vector<std::string>& needed);

}  // namespace baton::pipeline
