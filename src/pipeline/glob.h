// Files by pattern, as pipelines name them: `*` and `?` within a name, `**` for any folders, a folder for all
// that is in it. What begins with a dot has to be named, or be in a folder that is; what baton itself keeps
// (.baton and .baton-…) has to be named.
#pragma once

#include <string>
#include <vector>

namespace baton::pipeline {

// Paths from `directory` (empty: the current one) to files and symbolic links, in order, each once. What the
// pattern names outside of the directory keeps its name.
std::vector<std::string> files_matching(const std::string& directory, const std::string& pattern);

}  // namespace baton::pipeline
