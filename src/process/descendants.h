// All that this process has started, and whatever that has started in turn.
#pragma once

#include <sys/types.h>

namespace baton::process {

// Kills it: the groups of all of them, so that those go too whose parent has ended already.
void kill_descendants();

// Whether somebody of that process group still runs. One who has ended does not, though nobody may ever ask
// how: the first process of a container often does not.
bool is_alive(pid_t group);

}  // namespace baton::process
