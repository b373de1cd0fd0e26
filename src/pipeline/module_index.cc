#include "pipeline/module_index.h"

#include <algorithm>
#include <set>

namespace baton::pipeline {

ModuleIndex::ModuleIndex(const Definition& definition) : definition_(definition) {
  for (const ModuleSpec& spec : definition.modules) {
    specs_.emplace(spec.id, &spec);
    ids_.push_back(spec.id);
    if (!spec.category.empty()) categories_.push_back(spec.category);
  }
}

const ModuleSpec* ModuleIndex::find(const std::string& id) const {
  const auto found = specs_.find(id);
  return found == specs_.end() ? nullptr : found->second;
}

bool ModuleIndex::is_unknown(const Need& need) const {
  return need.by == NeedBy::id && need.kind != NeedKind::optional && !specs_.contains(need.on);
}

std::vector<const ModuleSpec*> ModuleIndex::selected_by(const Need& need, const ModuleSpec& of) const {
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

std::vector<const ModuleSpec*> ModuleIndex::required_by(const ModuleSpec& spec) const {
  std::vector<const ModuleSpec*> all;
  for (const Need& need : spec.needs) {
    if (need.kind == NeedKind::optional) continue;
    for (const ModuleSpec* one : selected_by(need, spec)) all.push_back(one);
  }
  return all;
}

bool ModuleIndex::may_be_required(const ModuleSpec& by, const std::string& id) const {
  std::set<std::string> seen;
  std::vector<const ModuleSpec*> open = {&by};
  while (!open.empty()) {
    const ModuleSpec& next = *open.back();
    open.pop_back();
    if (std::ranges::any_of(next.needs, [this](const Need& need) { return is_unknown(need); })) return true;
    for (const ModuleSpec* needed : required_by(next)) {
      if (needed->id == id) return true;
      if (seen.insert(needed->id).second) open.push_back(needed);
    }
  }
  return false;
}

}  // namespace baton::pipeline
