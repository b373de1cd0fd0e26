// The report of a run for programs.
#pragma once

#include <map>
#include <string>

#include "pipeline/report.h"

namespace baton::pipeline {

// With what modules came to, as far as it is known: encoded, by module.
std::string to_json(const RunReport& report, const std::map<std::string, std::string>& values);

}  // namespace baton::pipeline
