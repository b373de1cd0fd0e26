// Tasks for programs, with the protocol's names and in its order, and for people.
#pragma once

#include <string>

#include "cli/json_object.h"
#include "client/types.h"

namespace baton::cli {

JsonObject json_of(const client::TaskView& view);
JsonObject json_of(const client::Task& task);  // {"task": {…}, "payload": …, "result" or "reason": …}
JsonObject json_of(const client::Submitted& submitted);

// What became of a task that was waited for, in a few words: failed: out of paper
std::string ending_of(const client::Task& task);

}  // namespace baton::cli
