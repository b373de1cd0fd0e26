#include "pipeline/module.h"

#include <algorithm>
#include <utility>

namespace baton::pipeline {

std::vector<Target> combinations(const std::vector<Axis>& axes,
                                 const std::vector<std::string>& as_capabilities) {
  std::vector<Target> all(1);
  for (const Axis& axis : axes) {
    const bool is_capability = std::ranges::find(as_capabilities, axis.name) != as_capabilities.end();
    std::vector<Target> longer;
    for (const Target& target : all) {
      for (const std::string& value : axis.values) {
        Target& one = longer.emplace_back(target);
        one.name += (one.name.empty() ? "" : ",") + value;
        one.axes[axis.name] = value;
        if (is_capability) one.capabilities.push_back(value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace baton::pipeline
