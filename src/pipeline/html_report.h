// A run as one page that needs nothing else: what failed, the graph, who did what when, and what was said.
#pragma once

#include <functional>
#include <string>

#include "pipeline/report.h"

namespace baton::pipeline {

// `log` gives what a module said; nothing, if that is not known.
std::string html_of(const Graph& graph, const RunReport& report,
                    const std::function<std::string(const std::string& module)>& log);

}  // namespace baton::pipeline
