// Pipelines for tests.
#pragma once

#include <string>
#include <vector>

#include "pipeline/builder.h"
#include "pipeline/context.h"
#include "pipeline/graph.h"
#include "pipeline/pipeline.h"

namespace baton::pipeline {

inline void do_nothing(Context&) {}

// A definition of modules that do nothing, with their needs.
class Sketch {
 public:
  ModuleSpec& add(const std::string& id, const std::vector<std::string>& needs = {}) {
    ModuleSpec& spec = definition.modules.emplace_back();
    spec.id = id;
    for (const std::string& need : needs) spec.needs.push_back({.on = need});
    spec.body = [](Context&, std::span<const Input>) { return std::make_shared<const None>(); };
    spec.result = result_type<None>();
    return spec;
  }
  Graph graph(const Selection& selection = {}) const { return *Graph::of(definition, selection); }
  std::vector<std::string> problems(const Selection& selection = {}) const {
    std::vector<std::string> all;
    const auto graph = Graph::of(definition, selection);
    if (graph) return all;
    for (const Problem& problem : graph.error()) all.push_back(describe(problem));
    return all;
  }

  Definition definition;
};

}  // namespace baton::pipeline
