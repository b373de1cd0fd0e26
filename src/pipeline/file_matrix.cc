#include "pipeline/file_matrix.h"

#include <algorithm>
#include <map>
#include <string>

namespace baton::pipeline {
namespace {

// Every combination of the axes, less what is excluded, and what is included besides.
std::vector<Target> combinations_of(YamlMap& map, const Yaml& matrix) {
  using Axes = std::map<std::string, std::string>;
  std::vector<std::string> order;
  std::vector<Axes> all = {{}};
  std::vector<std::string> capabilities;
  const auto combinations = [&](const Yaml& list) {
    std::vector<Axes> some;
    for (const Yaml& item : list.items) {
      Axes& axes = some.emplace_back();
      for (const auto& [name, value] : item.fields) axes[name.text] = value.text;
    }
    return some;
  };
  std::vector<Axes> excluded, included;
  for (const auto& [name, values] : matrix.fields) {
    if (name.text == "caps") {
      capabilities = map.texts_of(values, "caps");
    } else if (name.text == "exclude") {
      excluded = combinations(values);
    } else if (name.text == "include") {
      included = combinations(values);
    } else {
      order.push_back(name.text);
      std::vector<Axes> more;
      for (const Axes& axes : all) {
        for (const std::string& value : map.texts_of(values, name.text)) {
          more.push_back(axes);
          more.back()[name.text] = value;
        }
      }
      all = std::move(more);
      if (all.size() > kTargetsMax) {
        map.complain(matrix, "a matrix of more than " + std::to_string(kTargetsMax) + " targets");
        return {Target{}};  // one complaint is enough
      }
    }
  }
  std::erase_if(all, [&](const Axes& axes) {
    return std::ranges::any_of(excluded, [&](const Axes& out) { return std::ranges::includes(axes, out); });
  });
  all.insert(all.end(), included.begin(), included.end());
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
  if (matrix.kind != Yaml::Kind::list) return combinations_of(map, matrix);
  std::vector<Target> targets;
  for (const std::string& name : map.texts_of(matrix, "matrix"))
    targets.push_back({name, {name}, {{"target", name}}});
  return targets;
}

}  // namespace baton::pipeline
