// How the processes under test talk, and how their coordinator is set up.
#pragma once

#include <fmt/format.h>

#include <string>

#include "engine/coordinator.h"

namespace baton::crash {

// One line to standard output, in one write: it is there, or it is not.
void say_line(std::string line);
template <class... Parts>
void say(fmt::format_string<Parts...> format, Parts&&... parts) {
  say_line(fmt::format(format, std::forward<Parts>(parts)...));
}

// So small that segments fill, snapshots are made and old segments go within a fraction of a second.
CoordinatorOptions small_options();
// Says everything that was recovered.
void report(Coordinator& coordinator);
// To standard error; the return value is the exit code.
int complain(const Error& error);

}  // namespace baton::crash
