// A graph as a picture.
#pragma once

#include <functional>
#include <string>

#include "pipeline/graph.h"

namespace baton::pipeline {

std::string dot_of(const Graph& graph);  // for Graphviz
// By itself: waves from left to right. `class_of` says how each module is to look, for whoever has styles.
std::string svg_of(const Graph& graph, const std::function<std::string(NodeIndex)>& class_of = {});

}  // namespace baton::pipeline
