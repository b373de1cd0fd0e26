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

// Whether a coordinator tells what became of modules that were handed out.
enum class Company : bool { alone, with_coordinator };

// Of a run that its master did not end: how modules did that are over, and that those are lost which the
// master ran itself and which may not be begun twice; for one that is alone, also those which it had handed
// out. Of a run that is over: what has succeeded, and how those did that may not be begun twice and were.
// Nothing, if it was of another pipeline.
std::map<std::string, pipeline::Restored> ended_before(const std::string& directory, const std::string& run,
                                                       const pipeline::Graph& graph, Company company);

}  // namespace baton::cli
