#include "pipeline/definition_check.h"

#include <algorithm>
#include <map>
#include <set>

#include "pipeline/graph.h"
#include "pipeline/similar.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kCapabilitiesMax = 16;

bool is_graphic(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}
bool is_module_id(std::string_view id) {
  return !id.empty() && id.size() <= kModuleIdBytesMax && is_graphic(id) &&
         id.find_first_of("[]") == std::string_view::npos;
}

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

class DefinitionCheck {
 public:
  DefinitionCheck(const Definition& definition, const ModuleIndex& modules)
      : definition_(definition), modules_(modules) {}

  std::vector<Problem> run() {
    for (const ModuleSpec& spec : definition_.modules) check(spec);
    check_cycles();
    return std::move(problems_);
  }

 private:
  void complain(const ModuleSpec& spec, std::string message) {
    complain(spec, spec.where, std::move(message));
  }
  void complain(const ModuleSpec& spec, const std::string& where, std::string message) {
    problems_.push_back({spec.id, where.empty() ? spec.where : where, std::move(message)});
  }

  void check(const ModuleSpec& spec) {
    check_id(spec);
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
        if (modules_.selected_by(need, spec).empty()) {
          complain(spec, "no module has the " + std::string(need.by == NeedBy::tag ? "tag " : "category ") +
                             quoted(need.on) + " that it needs");
        }
        continue;
      }
      if (need.on == spec.id) {
        complain(spec, need.where, "it needs itself");
      } else if (modules_.is_unknown(need)) {
        complain(
            spec, need.where,
            "it needs " + quoted(need.on) + ", which does not exist" + suggestion(need.on, modules_.ids()));
      } else if (!seen.emplace(need.on, need.kind).second) {
        complain(spec, need.where, "it needs " + quoted(need.on) + " twice");
      } else if (modules_.find(need.on) != nullptr && need.takes_value &&
                 !modules_.find(need.on)->result.travels() && !spec.pinned) {
        complain(spec, "it needs the result of " + quoted(need.on) +
                           ", which cannot leave the master; pin this module to the master too");
      }
    }
  }

  void check_places(const ModuleSpec& spec) {
    for (const std::string& name : spec.capabilities) {
      if (!is_capability(name))
        complain(spec,
                 quoted(name) + " is not a capability: 1 to 128 printable ASCII characters without spaces");
    }
    for (const std::string& name : spec.preferred) {
      if (!is_capability(name))
        complain(spec, quoted(name) +
                           ", which it prefers, is not a capability: 1 to 128 printable ASCII characters "
                           "without spaces");
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
    if (spec.targets.size() > kTargetsMax) {  // looking at each of them may take minutes
      return complain(spec, "a matrix of " + std::to_string(spec.targets.size()) + " targets; the limit is " +
                                std::to_string(kTargetsMax));
    }
    std::vector<std::string> names;
    for (const Target& target : spec.targets) {
      if (!is_module_id(target.name))
        complain(spec,
                 quoted(target.name) +
                     " cannot be a target's name: printable ASCII characters without spaces and brackets");
      if (std::ranges::find(names, target.name) != names.end())
        complain(spec, "target " + quoted(target.name) + " is there twice");
      for (const std::string& name : target.capabilities) {
        if (!is_capability(name))
          complain(spec,
                   quoted(name) + " is not a capability: 1 to 128 printable ASCII characters without spaces");
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
    }
    for (const Consumed& consumed : spec.consumes) {
      const ModuleSpec* producer = modules_.find(consumed.producer);
      const std::string what = quoted(consumed.name) + " of " + quoted(consumed.producer);
      if (producer == nullptr) {
        complain(
            spec, consumed.where,
            "it consumes " + what + ", which does not exist" + suggestion(consumed.producer, modules_.ids()));
        continue;
      }
      std::vector<std::string> produced;
      for (const Produced& one : producer->produces) produced.push_back(one.name);
      if (std::ranges::find(produced, consumed.name) == produced.end()) {
        complain(spec, consumed.where,
                 "it consumes " + what + ", which produces no such artifact" +
                     suggestion(consumed.name, produced));
      } else if (!modules_.may_be_required(spec, consumed.producer)) {
        complain(spec, consumed.where,
                 "it consumes " + what + " without needing that module: nothing says that it has run");
      }
    }
  }

  void check_id(const ModuleSpec& spec) {
    if (!is_module_id(spec.id)) {
      complain(spec, "an id is 1 to 100 printable ASCII characters without spaces and brackets, and " +
                         quoted(spec.id) + " is not");
    }
    if (modules_.find(spec.id) != &spec) complain(spec, "there is another module with this id");
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
        if (need.by == NeedBy::id && need.on == spec->id) continue;  // that was told
        for (const ModuleSpec* one : modules_.selected_by(need, *spec)) step.needed.push_back(one);
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

  const Definition& definition_;
  const ModuleIndex& modules_;
  std::vector<Problem> problems_;
};

}  // namespace

std::vector<Problem> check(const Definition& definition, const ModuleIndex& modules) {
  return DefinitionCheck(definition, modules).run();
}

}  // namespace baton::pipeline
