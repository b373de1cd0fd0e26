// What a module asks of a store, again while that has to do with others.
#pragma once

#include <stop_token>

#include "base/pause.h"
#include "base/result.h"
#include "base/time.h"

namespace baton::pipeline {

// However long that takes: whoever is busy is there, and what a module brings may have taken hours to make.
// For modules alone, which have their own time, and nobody else waits on their threads.
template <class Call>
auto patiently(const Call& call, const std::stop_token& stop) -> decltype(call()) {
  for (;;) {
    auto done = call();
    if (done || done.error().code != Errc::exhausted || pause(milliseconds(250), stop)) return done;
  }
}

}  // namespace baton::pipeline
