// Reads part of the log again while it is being written: sealed segments only, which never change.
#pragma once

#include "log/segment_reader.h"
#include "log/segments.h"

namespace baton::log {

// Hands the records `from` to `to` to the visitor, in order. Both have to lie in sealed segments.
Status replay_sealed(Disk& disk, const Segments& segments, Lsn from, Lsn to, const Visitor& visitor);

}  // namespace baton::log
