// A graph as a picture.
#pragma once

#include <string>

#include "pipeline/graph.h"

namespace baton::pipeline {

std::string dot_of(const Graph& graph);  // for Graphviz
std::string svg_of(const Graph& graph);  // by itself: waves from left to right

}  // namespace baton::pipeline
