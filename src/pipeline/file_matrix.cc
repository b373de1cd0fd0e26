#include "pipeline/file_matrix.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "pipeline/similar.h"

namespace baton::pipeline {
namespace {

bool is_axis(const std::string& key) { return key != "caps" && key != "exclude" && key != "include"; }

void check_axis(YamlMap& map, const Yaml& matrix, const Yaml& named_at, const std::string& name) {
  std::vector<std::string> axes;
  for (const auto& [key, values] : matrix.fields) {
    if (is_axis(key.text)) axes.push_back(key.text);
  }
  if (std::ranges::find(axes, name) == axes.end())
    map.complain(named_at, "the matrix has no axis '" + name + "'" + suggestion(name, axes));
}

// Every combination of the axes, less what is excluded, and what is included besides.
std::vector<Target> combinations_of(YamlMap& map, const Yaml& matrix) {
  using Axes = std::map<std::string, std::string>;
  std::vector<std::string> order;
  std::vector<Axes> all = {{}};
  std::vector<std::string> capabilities;
  const auto combinations = [&](const Yaml& key, const Yaml& list) {
    std::vector<Axes> some;
    if (list.kind != Yaml::Kind::list) map.complain(list, key.text + " has to be a list of `{AXIS: value}`");
    for (const Yaml& item : list.items) {
      if (item.fields.empty()) map.complain(item, "an item of " + key.text + " is `{AXIS: value}`");
      Axes axes;
      for (const auto& [name, value] : item.fields) {
        if (auto text = map.text_of(value, name.text)) axes[name.text] = std::move(*text);
        if (key.text == "exclude") check_axis(map, matrix, name, name.text);
      }
      // What was complained of is left out: with fewer axes than were meant it would fit too much.
      if (axes.size() == item.fields.size() && !axes.empty()) some.push_back(std::move(axes));
    }
    return some;
  };
  std::vector<Axes> excluded, included;
  for (const auto& [name, values] : matrix.fields) {
    if (name.text == "caps") {
      capabilities = map.texts_of(values, "caps");
      for (const std::string& capability : capabilities) {
        if (capability.starts_with('{') && capability.ends_with('}'))
          check_axis(map, matrix, values, capability.substr(1, capability.size() - 2));
      }
    } else if (name.text == "exclude") {
      excluded = combinations(name, values);
    } else if (name.text == "include") {
      included = combinations(name, values);
    } else {
      order.push_back(name.text);
      const std::vector<std::string> along = map.texts_of(values, name.text);
      if (all.size() * along.size() > kTargetsMax) {  // there may be more than there is memory for
        map.complain(matrix, "a matrix of more than " + std::to_string(kTargetsMax) + " targets");
        return {};
      }
      std::vector<Axes> more;
      for (const Axes& axes : all) {
        for (const std::string& value : along) {
          more.push_back(axes);
          more.back()[name.text] = value;
        }
      }
      all = std::move(more);
    }
  }
  std::erase_if(all, [&](const Axes& axes) {
    return std::ranges::any_of(excluded, [&](const Axes& out) { return std::ranges::includes(axes, out); });
  });
  all.insert(all.end(), included.begin(), included.end());
  if (order.empty()) return {};
  std::vector<Target> targets;
  for (const Axes& axes : all) {
    Target target{.axes = axes};
    for (const std::string& axis : order) {
      if (const auto value = axes.find(axis); value != axes.end())
        target.name += (target.name.empty() ? "" : ",") + value->second;
    }
    for (std::string capability : capabilities) {
      for (const auto& [axis, value] : axes) {
        const std::string place = "{" + axis + "}";
        if (const std::size_t at = capability.find(place); at != std::string::npos)
          capability.replace(at, place.size(), value);
      }
      target.capabilities.push_back(std::move(capability));
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

}  // namespace

std::vector<Target> targets_of(YamlMap& map, const Yaml& matrix) {
  if (matrix.kind == Yaml::Kind::map) return combinations_of(map, matrix);
  if (matrix.kind != Yaml::Kind::list || matrix.items.empty())
    map.complain(matrix, "matrix has to be a list of targets, or a map of axes");
  std::vector<Target> targets;
  for (const Yaml& item : matrix.items) {
    if (auto name = map.text_of(item, "a target")) targets.push_back({*name, {*name}, {{"target", *name}}});
  }
  return targets;
}

}  // namespace baton::pipeline
