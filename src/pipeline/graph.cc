#include "pipeline/graph.h"

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "pipeline/definition_check.h"
#include "pipeline/module_index.h"
#include "pipeline/similar.h"

namespace baton::pipeline {

// Chooses modules, makes nodes of them, and connects them.
class GraphMaker {
 public:
  GraphMaker(const Definition& definition, const Selection& selection)
      : definition_(definition),
        selection_(selection),
        modules_(definition),
        problems_(check(definition, modules_)) {}

  std::expected<Graph, std::vector<Problem>> make() {
    choose();
    if (problems_.empty()) spread();
    if (!problems_.empty()) return std::unexpected(std::move(problems_));
    connect();
    return std::move(graph_);
  }

 private:
  void complain(std::string message) { problems_.push_back({{}, {}, std::move(message)}); }

  static std::string instance_of(const ModuleSpec& spec, const Target& target) {
    return spec.id + "[" + target.name + "]";
  }
  // As people call them: modules, and the instances of a matrix.
  std::vector<std::string> names() const {
    std::vector<std::string> all = modules_.ids();
    for (const ModuleSpec& spec : definition_.modules) {
      for (const Target& target : spec.targets) all.push_back(instance_of(spec, target));
    }
    return all;
  }

  // Fills chosen_, instances_chosen_ and left_out_.
  void choose() {
    const auto check_known = [&](const std::vector<std::string>& names, const std::vector<std::string>& among,
                                 const char* what) {
      for (const std::string& name : names) {
        if (std::ranges::find(among, name) == among.end())
          complain("there is no " + std::string(what) + " '" + name + "'" + suggestion(name, among));
      }
    };
    if (!selection_.modules.empty() || !selection_.skip_modules.empty()) {
      const std::vector<std::string> known = names();
      check_known(selection_.modules, known, "module");
      check_known(selection_.skip_modules, known, "module");
    }
    check_known(selection_.categories, modules_.categories(), "category");
    check_known(selection_.skip_categories, modules_.categories(), "category");

    const auto is_among = [](const std::vector<std::string>& names, const std::string& name) {
      return std::ranges::find(names, name) != names.end();
    };
    const bool all = selection_.modules.empty() && selection_.categories.empty();
    std::vector<const ModuleSpec*> open, partly;
    for (const ModuleSpec& spec : definition_.modules) {
      if (is_among(selection_.skip_modules, spec.id) || is_among(selection_.skip_categories, spec.category))
        left_out_.insert(spec.id);
      else if (all || is_among(selection_.modules, spec.id) || is_among(selection_.categories, spec.category))
        open.push_back(&spec);
      for (const Target& target : spec.targets) {
        const std::string instance = instance_of(spec, target);
        if (is_among(selection_.skip_modules, instance)) left_out_.insert(instance);
        if (is_among(selection_.modules, instance))
          instances_chosen_.insert(instance), partly.push_back(&spec);
      }
    }
    const auto bring_along = [&](const ModuleSpec& spec) {
      for (const ModuleSpec* needed : modules_.required_by(spec)) open.push_back(needed);
    };
    for (const ModuleSpec* spec : partly) bring_along(*spec);
    while (!open.empty()) {
      const ModuleSpec* spec = open.back();
      open.pop_back();
      if (chosen_.insert(spec->id).second) bring_along(*spec);
    }
    if (chosen_.empty() && instances_chosen_.empty() && problems_.empty())
      complain(definition_.modules.empty() ? "there are no modules" : "nothing is left to run");
  }

  void spread() {
    graph_.definition_ = &definition_;
    const auto add = [&](const ModuleSpec& spec, const Target* target) {
      GraphNode node{.spec = &spec, .id = spec.id, .target = target};
      std::vector<std::string> capabilities = spec.capabilities;
      if (target) {
        node.id = instance_of(spec, *target);
        capabilities.insert(capabilities.end(), target->capabilities.begin(), target->capabilities.end());
      }
      node.capabilities = canonical(std::move(capabilities));
      node.left_out = left_out_.contains(spec.id) || left_out_.contains(node.id);
      instances_[spec.id].push_back(static_cast<NodeIndex>(graph_.nodes_.size()));
      graph_.by_id_.emplace(node.id, static_cast<NodeIndex>(graph_.nodes_.size()));
      graph_.nodes_.push_back(std::move(node));
    };
    for (const ModuleSpec& spec : definition_.modules) {
      const bool whole = chosen_.contains(spec.id);
      if (whole && !spec.is_matrix()) add(spec, nullptr);
      for (const Target& target : spec.targets) {
        if (whole || instances_chosen_.contains(instance_of(spec, target))) add(spec, &target);
      }
    }
    if (graph_.nodes_.size() > kNodesMax) {
      complain(std::to_string(graph_.nodes_.size()) + " modules in one run; the limit is " +
               std::to_string(kNodesMax));
    }
  }

  void connect() {
    std::vector<std::size_t> open(graph_.nodes_.size());
    for (NodeIndex index = 0; index < graph_.nodes_.size(); ++index) {
      GraphNode& node = graph_.nodes_[index];
      std::set<NodeIndex> needed;
      for (const Need& need : node.spec->needs) {
        GraphNeed edge{need.kind, need.takes_value, {}};
        for (const ModuleSpec* spec : modules_.selected_by(need, *node.spec)) {
          const auto found = instances_.find(spec->id);
          if (found != instances_.end())
            edge.on.insert(edge.on.end(), found->second.begin(), found->second.end());
        }
        needed.insert(edge.on.begin(), edge.on.end());
        node.needs.push_back(std::move(edge));
      }
      for (const NodeIndex other : needed) graph_.nodes_[other].dependants.push_back(index);
      open[index] = needed.size();
    }
    for (NodeIndex index = 0; index < open.size(); ++index) {
      if (open[index] == 0) graph_.order_.push_back(index);
    }
    for (std::size_t done = 0; done < graph_.order_.size(); ++done) {
      for (const NodeIndex other : graph_.nodes_[graph_.order_[done]].dependants) {
        if (--open[other] == 0) graph_.order_.push_back(other);
      }
    }
  }

  const Definition& definition_;
  const Selection& selection_;
  const ModuleIndex modules_;
  std::vector<Problem> problems_;
  std::set<std::string> chosen_;            // modules, with all their instances
  std::set<std::string> instances_chosen_;  // of a matrix, where not all of them are
  std::set<std::string> left_out_;          // modules or instances
  std::map<std::string, std::vector<NodeIndex>> instances_;
  Graph graph_;
};

std::expected<Graph, std::vector<Problem>> Graph::of(const Definition& definition,
                                                     const Selection& selection) {
  return GraphMaker(definition, selection).make();
}

const NodeIndex* Graph::find(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second;
}

GraphParts Graph::parts() const {
  std::string modules = definition_->name, needs, capabilities, results;
  for (const GraphNode& node : nodes_) {
    modules += '\n' + node.id;
    results += '\n' + node.spec->result.schema;
    capabilities += '\n';
    for (const std::string& name : node.capabilities) capabilities += ' ' + name;
    needs += '\n';
    for (const GraphNeed& need : node.needs) {
      needs += " <" + std::to_string(static_cast<int>(need.kind));
      for (const NodeIndex other : need.on) needs += ' ' + nodes_[other].id;
      needs += '>';
    }
  }
  const auto hash = [](const std::string& text) { return content_hash(bytes_of(text)); };
  return {.modules = hash(modules),
          .needs = hash(needs),
          .capabilities = hash(capabilities),
          .results = hash(results)};
}

std::uint64_t Graph::fingerprint() const {
  const GraphParts all = parts();
  std::string text;
  for (const std::uint64_t part : {all.modules, all.needs, all.capabilities, all.results})
    text += std::to_string(part) + ' ';
  return content_hash(bytes_of(text));
}

bool is_capability(std::string_view name) {
  constexpr std::size_t kBytesMax = 128;
  return !name.empty() && name.size() <= kBytesMax &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c < '\x7f'; });
}

std::vector<std::string> canonical(std::vector<std::string> capabilities) {
  for (std::string& name : capabilities) {
    for (char& c : name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
  }
  std::ranges::sort(capabilities);
  const auto [first, last] = std::ranges::unique(capabilities);
  capabilities.erase(first, last);
  return capabilities;
}

bool covers(const std::vector<std::string>& offered, const std::vector<std::string>& needed) {
  return std::ranges::includes(offered, needed);
}

}  // namespace baton::pipeline
