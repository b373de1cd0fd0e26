// A pass over the whole log that finds out where it ends and whether it is intact.
//
// Recovery and `verify` are this one pass; they differ in what they do with the answer. It changes nothing
// on the disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "log/control.h"
#include "log/segment_reader.h"
#include "log/segments.h"
#include "log/writer.h"

namespace baton::log {

enum class ProblemKind { none, torn_tail, corrupt, missing_segment, unsupported_version };

struct Problem {
  ProblemKind kind = ProblemKind::none;
  std::string file;
  std::uint64_t offset = 0;
  Lsn first = 0;  // records concerned; `last` is 0 where nobody can say how far it goes
  Lsn last = 0;
  std::string message;  // what is wrong and what to do
};

struct LsnRange {
  Lsn first = 0;
  Lsn last = 0;
  friend bool operator==(const LsnRange&, const LsnRange&) = default;
};
std::string to_text(const std::vector<LsnRange>& ranges);  // "1 to 61, 75 to 80"

struct LogReport {
  std::uint64_t segments = 0;
  std::uint64_t batches = 0;
  std::uint64_t records = 0;
  Lsn first = 0;  // of the records that were read
  Lsn last = 0;
  std::vector<LsnRange> ranges;  // the same with its gaps, where segments were removed
  Instant first_time;
  Instant last_time;
  std::uint32_t first_epoch = 0;
  std::uint32_t last_epoch = 0;
  bool clean = false;   // closed cleanly
  bool in_use = false;  // another process may be writing to it: a batch half there is no problem
  Problem problem;      // the first one; the rest of the report covers what was read before it
};

// What is done with records before those that are needed. They are kept only for the payloads in them, and
// there may be gaps between them.
enum class Older { skip, check, visit };

struct SurveyOptions {
  Lsn needed_from = 1;  // records from here on have to be there without a gap
  // Unless they are skipped, what can be read is read although a segment is missing or has no valid header.
  Older older = Older::skip;
  Visitor visitor;  // for every record from needed_from on, and older ones if so chosen; may be empty
};

struct Survey {
  LogReport report;
  std::optional<Control> control;
  std::vector<SegmentInfo> segments;
  LogEnd end;
  std::uint64_t damage_end = 0;  // with a torn tail: dropped are bytes end.tail.end up to here
};

// Fails only where the disk does, or the visitor; what is wrong with the log is in the report.
Result<Survey> survey_log(Disk& disk, const SurveyOptions& options);

// Whether there is at least one segment; without any, and without CONTROL, there is no log.
bool has_segments(Disk& disk);

// What `baton log verify` prints: every segment that is there is read to its end.
Result<LogReport> verify_log(Disk& disk, Lsn needed_from = 1);

}  // namespace baton::log
