#include "pipeline/graph.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/hash.h"
#include "pipeline/similar.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kCapabilitiesMax = 16;
constexpr std::size_t kNameBytesMax = 128;

bool is_graphic(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}
bool is_module_id(std::string_view id) {
  return !id.empty() && id.size() <= kModuleIdBytesMax && is_graphic(id) &&
         id.find_first_of("[]") == std::string_view::npos;
}
bool is_capability(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && is_graphic(name);
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

}  // namespace

// Goes through a definition once for each thing that may be wrong with it, and makes the graph if nothing is.
class GraphMaker {
 public:
  GraphMaker(const Definition& definition, const Selection& selection)
      : definition_(definition), selection_(selection) {}

  std::expected<Graph, std::vector<Problem>> make() {
    for (const ModuleSpec& spec : definition_.modules) note(spec);
    for (const ModuleSpec& spec : definition_.modules) check(spec);
    choose();
    if (problems_.empty()) check_cycles();
    if (problems_.empty()) spread();
    if (problems_.empty()) connect();
    if (!problems_.empty()) return std::unexpected(std::move(problems_));
    return std::move(graph_);
  }

 private:
  void complain(const ModuleSpec& spec, std::string message) {
    problems_.push_back({spec.id, spec.where, std::move(message)});
  }
  void complain(std::string message) { problems_.push_back({{}, {}, std::move(message)}); }

  void note(const ModuleSpec& spec) {
    if (!is_module_id(spec.id)) {
      complain(spec, "an id is 1 to 100 printable characters without spaces and brackets, and " +
                         quoted(spec.id) + " is not");
    }
    if (!specs_.emplace(spec.id, &spec).second) complain(spec, "there is another module with this id");
    ids_.push_back(spec.id);
    if (!spec.category.empty()) categories_.push_back(spec.category);
  }

  void check(const ModuleSpec& spec) {
    if (!spec.body) complain(spec, "it has no body: a declaration ends with run(…)");
    check_needs(spec);
    check_places(spec);
    check_targets(spec);
    check_limits(spec);
    check_artifacts(spec);
  }

  void check_needs(const ModuleSpec& spec) {
    std::set<std::pair<std::string, NeedKind>> seen;
    for (const Need& need : spec.needs) {
      if (need.by != NeedBy::id) {
        if (selected_by(need, spec).empty()) {
          complain(spec, "no module has the " + std::string(need.by == NeedBy::tag ? "tag " : "category ") +
                             quoted(need.on) + " that it needs");
        }
        continue;
      }
      if (need.on == spec.id) {
        complain(spec, "it needs itself");
      } else if (!specs_.contains(need.on) && need.kind != NeedKind::optional) {
        complain(spec, "it needs " + quoted(need.on) + ", which does not exist" + suggestion(need.on, ids_));
      } else if (!seen.emplace(need.on, need.kind).second) {
        complain(spec, "it needs " + quoted(need.on) + " twice");
      } else if (specs_.contains(need.on) && need.takes_value && !specs_.at(need.on)->result.travels() &&
                 !spec.pinned) {
        complain(spec, "it needs the result of " + quoted(need.on) +
                           ", which cannot leave the master; pin this module to the master too");
      }
    }
  }

  void check_places(const ModuleSpec& spec) {
    for (const std::string& name : spec.capabilities) {
      if (!is_capability(name))
        complain(spec, quoted(name) + " is not a capability: 1 to 128 printable characters without spaces");
    }
    if (spec.capabilities.size() > kCapabilitiesMax) complain(spec, "it needs more than 16 capabilities");
    if (spec.pool.empty()) return;
    const auto pool = definition_.pools.find(spec.pool);
    if (pool == definition_.pools.end()) {
      std::vector<std::string> names;
      for (const auto& [name, places] : definition_.pools) names.push_back(name);
      complain(spec, "there is no pool " + quoted(spec.pool) + suggestion(spec.pool, names));
    } else if (spec.weight == 0 || spec.weight > pool->second) {
      complain(spec, "it takes " + std::to_string(spec.weight) + " places in pool " + quoted(spec.pool) +
                         ", which has " + std::to_string(pool->second));
    }
  }

  void check_targets(const ModuleSpec& spec) {
    if (spec.targets.size() > kTargetsMax) {
      complain(spec, "a matrix of " + std::to_string(spec.targets.size()) + " targets; the limit is " +
                         std::to_string(kTargetsMax));
    }
    std::vector<std::string> names;
    for (const Target& target : spec.targets) {
      if (!is_module_id(target.name))
        complain(spec, quoted(target.name) +
                           " cannot be a target's name: printable characters without spaces and brackets");
      if (std::ranges::find(names, target.name) != names.end())
        complain(spec, "target " + quoted(target.name) + " is there twice");
      for (const std::string& name : target.capabilities) {
        if (!is_capability(name))
          complain(spec, quoted(name) + " is not a capability: 1 to 128 printable characters without spaces");
      }
      if (target.capabilities.size() + spec.capabilities.size() > kCapabilitiesMax)
        complain(spec, "target " + quoted(target.name) + " needs more than 16 capabilities");
      names.push_back(target.name);
    }
    for (const std::string& name : spec.allow_failure_on) {
      if (std::ranges::find(names, name) == names.end()) {
        complain(spec, "it may fail on " + quoted(name) + ", which is none of its targets" +
                           suggestion(name, names));
      }
    }
  }

  void check_limits(const ModuleSpec& spec) {
    const auto check_duration = [&](std::string_view what, Duration duration) {
      if (duration < Duration{} || duration > days(30))
        complain(spec, "a " + std::string(what) + " is 0 to 30 days");
    };
    check_duration("timeout", spec.timeout);
    check_duration("queue timeout", spec.queue_timeout);
    check_duration("grace", spec.stop_grace);
    check_duration("delay of retries", spec.retry.delay);
    constexpr std::uint32_t kRetriesMax = 1000;
    if (spec.retry.max > kRetriesMax || spec.lost_retries > kRetriesMax)
      complain(spec, "more than 1000 retries");
  }

  void check_artifacts(const ModuleSpec& spec) {
    std::set<std::string> names;
    for (const Produced& produced : spec.produces) {
      if (!names.insert(produced.name).second)
        complain(spec, "it produces " + quoted(produced.name) + " twice");
      if (produced.name.empty()) complain(spec, "an artifact needs a name");
      if (produced.paths.empty()) complain(spec, "artifact " + quoted(produced.name) + " has no path");
    }
    for (const Consumed& consumed : spec.consumes) {
      const auto producer = specs_.find(consumed.producer);
      const std::string what = quoted(consumed.name) + " of " + quoted(consumed.producer);
      if (producer == specs_.end()) {
        complain(spec,
                 "it consumes " + what + ", which does not exist" + suggestion(consumed.producer, ids_));
        continue;
      }
      std::vector<std::string> produced;
      for (const Produced& one : producer->second->produces) produced.push_back(one.name);
      if (std::ranges::find(produced, consumed.name) == produced.end()) {
        complain(spec, "it consumes " + what + ", which produces no such artifact" +
                           suggestion(consumed.name, produced));
      } else if (!requires_module(spec, consumed.producer)) {
        complain(spec, "it consumes " + what + " without needing that module: nothing says that it has run");
      }
    }
  }

  // Directly or through others, by required needs only.
  bool requires_module(const ModuleSpec& spec, const std::string& id) const {
    std::set<std::string> seen;
    std::vector<const ModuleSpec*> open = {&spec};
    while (!open.empty()) {
      const ModuleSpec& next = *open.back();
      open.pop_back();
      for (const ModuleSpec* needed : required_by(next)) {
        if (needed->id == id) return true;
        if (seen.insert(needed->id).second) open.push_back(needed);
      }
    }
    return false;
  }

  std::vector<const ModuleSpec*> selected_by(const Need& need, const ModuleSpec& of) const {
    std::vector<const ModuleSpec*> selected;
    if (need.by == NeedBy::id) {
      if (const auto found = specs_.find(need.on); found != specs_.end()) selected.push_back(found->second);
      return selected;
    }
    for (const ModuleSpec& spec : definition_.modules) {
      const bool fits = need.by == NeedBy::tag ? std::ranges::find(spec.tags, need.on) != spec.tags.end()
                                               : spec.category == need.on;
      if (fits && spec.id != of.id) selected.push_back(&spec);
    }
    return selected;
  }

  std::vector<const ModuleSpec*> required_by(const ModuleSpec& spec) const {
    std::vector<const ModuleSpec*> all;
    for (const Need& need : spec.needs) {
      if (need.kind == NeedKind::optional) continue;
      for (const ModuleSpec* one : selected_by(need, spec)) all.push_back(one);
    }
    return all;
  }

  // Fills chosen_ and left_out_.
  void choose() {
    const auto check_known = [&](const std::vector<std::string>& names, const std::vector<std::string>& among,
                                 const char* what) {
      for (const std::string& name : names) {
        if (std::ranges::find(among, name) == among.end())
          complain("there is no " + std::string(what) + " " + quoted(name) + suggestion(name, among));
      }
    };
    check_known(selection_.modules, ids_, "module");
    check_known(selection_.skip_modules, ids_, "module");
    check_known(selection_.categories, categories_, "category");
    check_known(selection_.skip_categories, categories_, "category");

    const auto is_among = [](const std::vector<std::string>& names, const std::string& name) {
      return std::ranges::find(names, name) != names.end();
    };
    const bool all = selection_.modules.empty() && selection_.categories.empty();
    std::vector<const ModuleSpec*> open;
    for (const ModuleSpec& spec : definition_.modules) {
      if (is_among(selection_.skip_modules, spec.id) || is_among(selection_.skip_categories, spec.category))
        left_out_.insert(spec.id);
      else if (all || is_among(selection_.modules, spec.id) || is_among(selection_.categories, spec.category))
        open.push_back(&spec);
    }
    while (!open.empty()) {
      const ModuleSpec* spec = open.back();
      open.pop_back();
      if (!chosen_.insert(spec->id).second) continue;
      for (const ModuleSpec* needed : required_by(*spec)) open.push_back(needed);
    }
    if (chosen_.empty() && problems_.empty())
      complain(definition_.modules.empty() ? "there are no modules" : "nothing is left to run");
  }

  // A depth-first walk; whoever is met while still on the path closes a cycle.
  void check_cycles() {
    enum class Mark : std::uint8_t { on_path, done };
    std::map<const ModuleSpec*, Mark> marks;
    struct Step {
      const ModuleSpec* spec;
      std::vector<const ModuleSpec*> needed;
      std::size_t next = 0;
    };
    const auto step_of = [&](const ModuleSpec* spec) {
      Step step{spec, {}};
      for (const Need& need : spec->needs) {
        for (const ModuleSpec* one : selected_by(need, *spec)) step.needed.push_back(one);
      }
      return step;
    };
    for (const ModuleSpec& start : definition_.modules) {
      if (marks.contains(&start)) continue;
      std::vector<Step> path;
      path.push_back(step_of(&start));
      marks[&start] = Mark::on_path;
      while (!path.empty()) {
        if (path.back().next == path.back().needed.size()) {
          marks[path.back().spec] = Mark::done;
          path.pop_back();
          continue;
        }
        const ModuleSpec* next = path.back().needed[path.back().next++];
        const auto mark = marks.find(next);
        if (mark == marks.end()) {
          marks[next] = Mark::on_path;
          path.push_back(step_of(next));
        } else if (mark->second == Mark::on_path) {
          std::string cycle = next->id;
          for (auto step = path.rbegin(); step->spec != next; ++step) cycle = step->spec->id + " -> " + cycle;
          complain(*next, "it needs itself in the end: " + next->id + " -> " + cycle);
        }
      }
    }
  }

  void spread() {
    graph_.definition_ = &definition_;
    const auto add = [&](const ModuleSpec& spec, const Target* target) {
      GraphNode node{.spec = &spec, .id = spec.id, .target = target};
      std::vector<std::string> capabilities = spec.capabilities;
      if (target) {
        node.id += "[" + target->name + "]";
        capabilities.insert(capabilities.end(), target->capabilities.begin(), target->capabilities.end());
      }
      node.capabilities = canonical(std::move(capabilities));
      node.left_out = left_out_.contains(spec.id);
      instances_[spec.id].push_back(static_cast<NodeIndex>(graph_.nodes_.size()));
      graph_.by_id_.emplace(node.id, static_cast<NodeIndex>(graph_.nodes_.size()));
      graph_.nodes_.push_back(std::move(node));
    };
    for (const ModuleSpec& spec : definition_.modules) {
      if (!chosen_.contains(spec.id)) continue;
      if (!spec.is_matrix()) add(spec, nullptr);
      for (const Target& target : spec.targets) add(spec, &target);
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
        for (const ModuleSpec* spec : selected_by(need, *node.spec)) {
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
  std::vector<Problem> problems_;
  std::map<std::string, const ModuleSpec*> specs_;
  std::vector<std::string> ids_;
  std::vector<std::string> categories_;
  std::set<std::string> chosen_;
  std::set<std::string> left_out_;
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

std::uint64_t Graph::fingerprint() const {
  std::string text = definition_->name;
  for (const GraphNode& node : nodes_) {
    text += '\n' + node.id + ' ' + node.spec->result.schema;
    for (const std::string& name : node.capabilities) text += ' ' + name;
    for (const GraphNeed& need : node.needs) {
      text += " <" + std::to_string(static_cast<int>(need.kind));
      for (const NodeIndex other : need.on) text += ' ' + nodes_[other].id;
      text += '>';
    }
  }
  return content_hash(bytes_of(text));
}

std::string describe(const Problem& problem) {
  std::string text = problem.where.empty() ? "" : problem.where + ": ";
  if (!problem.module.empty()) text += problem.module + ": ";
  return text + problem.message;
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
