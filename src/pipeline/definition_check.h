// Whether a pipeline makes sense by itself, whatever part of it is to run.
#pragma once

#include <vector>

#include "pipeline/module_index.h"
#include "pipeline/problem.h"

namespace baton::pipeline {

// Everything that is wrong.
std::vector<Problem> check(const Definition& definition, const ModuleIndex& modules);

}  // namespace baton::pipeline
