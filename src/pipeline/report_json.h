// The report of a run for programs.
#pragma once

#include <map>
#include <string>

#include "pipeline/report.h"
#include "pipeline/secrets.h"

namespace baton::pipeline {

// With what modules came to, as far as it is known: encoded, by module. Secrets in it are not shown.
std::string to_json(const RunReport& report, const std::map<std::string, std::string>& values,
                    const Secrets& secrets);

}  // namespace baton::pipeline
