// A folder that artifacts are fetched into. What an earlier run left in it is removed before the first one of
// this run comes, so that nobody takes the one for the other.
//
//   FOLDER/.baton-fetched    the run that the rest of it is of; only where baton made the folder, or found it
//                            empty: what people keep somewhere is not ours to remove
#pragma once

#include <string>

#include "base/result.h"

namespace baton::pipeline {

Status make_ready_for(const std::string& run, const std::string& folder);

}  // namespace baton::pipeline
