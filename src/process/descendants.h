// All that this process has started, and whatever that has started in turn.
#pragma once

namespace baton::process {

// Kills it: the groups of all of them, so that those go too whose parent has ended already.
void kill_descendants();

}  // namespace baton::process
