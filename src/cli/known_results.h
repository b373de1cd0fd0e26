// What is known of modules from an earlier run, or from the same one before its master was killed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "pipeline/graph.h"
#include "pipeline/records.h"

namespace baton::cli {

// What modules came to that have succeeded, but for those behind one that has not: they are run again when
// that is.
std::map<std::string, pipeline::Restored> restorable(const std::vector<pipeline::JournalLine>& journal,
                                                     const pipeline::Graph& graph);

// Of a run that its master did not end: how modules did that are over, and that those are lost which the
// master ran itself or had handed out and which may not be begun twice. A coordinator that still knows of one
// that was handed out has the last word. Of a run that is over: what has succeeded, and how those did that
// may not be begun twice and were. Nothing, if it was of another pipeline.
std::map<std::string, pipeline::Restored> ended_before(const std::string& directory, const std::string& run,
                                                       const pipeline::Graph& graph);

}  // namespace baton::cli
