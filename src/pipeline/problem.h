// Something that is wrong with a pipeline.
#pragma once

#include <string>
#include <vector>

namespace baton::pipeline {

struct Problem {
  std::string module;  // empty: of the pipeline as a whole
  std::string where;   // file:line:column, if it comes from a file
  std::string message;
  friend bool operator==(const Problem&, const Problem&) = default;
};

// "ci.yaml:12:3: test: needs 'biuld', which does not exist (did you mean 'build'?)"
inline std::string describe(const Problem& problem) {
  const std::string where = problem.where.empty() ? "" : problem.where + ": ";
  return where + (problem.module.empty() ? "" : problem.module + ": ") + problem.message;
}

// As they stand in the file; first what is not about a place there.
void sort_by_place(std::vector<Problem>& problems);

}  // namespace baton::pipeline
