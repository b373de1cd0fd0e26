#include "log/survey.h"

#include <fmt/format.h>

#include <algorithm>

#include "log/tail.h"

namespace baton::log {
namespace {

constexpr const char* kAdvice = "Restore from a backup.";

struct FoundSegment {
  std::string path;
  std::uint64_t bytes = 0;
  SegmentHeader header;
};

class Surveyor {
 public:
  Surveyor(Disk& disk, const SurveyOptions& options) : disk_(disk), options_(options) {}

  // Each step returns false when the report is final: a problem was found.
  Result<Survey> run();

 private:
  Result<bool> read_control_file();
  Result<bool> find_segments();
  Result<bool> check_links();
  Result<bool> read_older_segments();
  Result<bool> read_needed_segments();
  Result<bool> read_sealed(FoundSegment& segment, const PreviousLink& end, const Visitor& visitor);
  Status read_what_can_be_read();
  Visitor older_visitor() const;
  Result<bool> read_unpinned(FoundSegment& segment, const SegmentHeader& next);
  Result<bool> read_newest(FoundSegment& segment);
  Result<TailVerdict> read_to_tail(SegmentReader& reader, FileWindow& window, const SegmentHeader& header);
  Result<std::unique_ptr<File>> open(const std::string& path, bool newest);
  Result<bool> take_batch(SegmentReader& reader, const Visitor& visitor);
  bool check_end();

  bool complain(ProblemKind kind, const std::string& file, std::uint64_t offset, Lsn first, Lsn last,
                const std::string& what);

  Disk& disk_;
  const SurveyOptions& options_;
  Survey survey_;
  std::vector<FoundSegment> found_;
  std::size_t needed_ = 0;  // index of the first segment that is needed
  Instant time_;
};

bool Surveyor::complain(ProblemKind kind, const std::string& file, std::uint64_t offset, Lsn first, Lsn last,
                        const std::string& what) {
  const std::string records =
      last == 0 ? fmt::format("from record {} on", first) : fmt::format("records {} to {}", first, last);
  const bool refused = kind != ProblemKind::torn_tail && kind != ProblemKind::unsupported_version;
  survey_.report.problem = {
      .kind = kind,
      .file = file,
      .offset = offset,
      .first = first,
      .last = last,
      .message = fmt::format("{}, offset {}, {}: {}.{}{}", file, offset, records, what, refused ? " " : "",
                             refused ? kAdvice : ""),
  };
  return false;
}

Result<Survey> Surveyor::run() {
  for (auto step : {&Surveyor::read_control_file, &Surveyor::find_segments, &Surveyor::check_links,
                    &Surveyor::read_older_segments, &Surveyor::read_needed_segments}) {
    auto going_on = (this->*step)();
    if (!going_on) return std::unexpected(going_on.error());
    if (*going_on) continue;
    if (auto done = read_what_can_be_read(); !done) return std::unexpected(done.error());
    break;
  }
  return std::move(survey_);
}

// Whoever wants to know what is left is told, although it is of no use to a start.
Status Surveyor::read_what_can_be_read() {
  const bool has_begun = survey_.report.segments > 0;
  if (options_.older == Older::skip || has_begun || !survey_.control) return {};
  for (FoundSegment& segment : found_) {
    auto file = open(segment.path, false);
    if (!file) return std::unexpected(file.error());
    FileWindow window(**file, segment.bytes);
    SegmentReader reader(window, segment.header, segment.header.created);
    ++survey_.report.segments;
    for (;;) {
      auto taken = take_batch(reader, older_visitor());
      if (!taken) return std::unexpected(taken.error());
      if (!*taken) break;
    }
  }
  return {};
}

Visitor Surveyor::older_visitor() const {
  return options_.older == Older::visit ? options_.visitor : Visitor();
}

Result<bool> Surveyor::read_control_file() {
  survey_.report.in_use = disk_.in_use();
  auto control = read_control(disk_);
  if (control) {
    survey_.control = *control;
    survey_.report.clean = *control && (*control)->clean;
    return true;
  }
  const bool newer = control.error().code == Errc::unsupported_version;
  if (!newer && control.error().code != Errc::corrupt) return std::unexpected(control.error());
  survey_.report.problem = {.kind = newer ? ProblemKind::unsupported_version : ProblemKind::corrupt,
                            .file = "CONTROL",
                            .message = control.error().message};
  return false;
}

// The page cache may hold what a failed sync never brought to the medium, so the end of the log is read
// past it.
Result<std::unique_ptr<File>> Surveyor::open(const std::string& path, bool newest) {
  return newest ? disk_.open_uncached(path) : disk_.open(path);
}

Result<bool> Surveyor::find_segments() {
  auto names = disk_.list("wal");
  if (!names && names.error().code != Errc::not_found) return std::unexpected(names.error());
  std::vector<Lsn> firsts;
  if (names) {
    for (const std::string& name : *names) {
      if (const auto first = segment_first_lsn(name)) firsts.push_back(*first);
    }
  }
  if (!firsts.empty() && !survey_.control) {
    return complain(ProblemKind::corrupt, "CONTROL", 0, firsts.front(), 0,
                    "the file is missing although there is a log");
  }
  for (const Lsn first : firsts) {
    FoundSegment segment{.path = segment_path(first)};
    auto file = open(segment.path, first == firsts.back());
    if (!file) return std::unexpected(file.error());
    auto bytes = (*file)->size();
    if (!bytes) return std::unexpected(bytes.error());
    segment.bytes = *bytes;
    Bytes head(kSegmentHeaderBytes);
    auto got = (*file)->read(0, head);
    if (!got) return std::unexpected(got.error());
    auto header = decode_segment_header(ByteView(head).first(*got));
    if (!header) {
      const bool newer = header.error().code == Errc::unsupported_version;
      return complain(newer ? ProblemKind::unsupported_version : ProblemKind::corrupt, segment.path, 0, first,
                      0, header.error().message);
    }
    segment.header = *header;
    if (header->uuid != survey_.control->uuid) {
      return complain(ProblemKind::corrupt, segment.path, 0, first, 0,
                      "the segment belongs to another cluster");
    }
    if (header->first != first || header->previous.last + 1 != first) {
      return complain(
          ProblemKind::corrupt, segment.path, 0, first, 0,
          fmt::format("the segment begins with record {}, so it was copied or renamed", header->first));
    }
    survey_.segments.push_back({.first = first, .last = 0, .bytes = segment.bytes});
    found_.push_back(std::move(segment));
  }
  for (std::size_t index = 1; index < found_.size(); ++index) {
    const bool adjacent = found_[index].header.previous.first == found_[index - 1].header.first;
    survey_.segments[index - 1].last =
        adjacent ? found_[index].header.previous.last : found_[index].header.first - 1;
  }
  return true;
}

Result<bool> Surveyor::check_links() {
  if (found_.empty()) return check_end();
  if (found_.front().header.first > options_.needed_from) {
    return complain(ProblemKind::missing_segment, segment_path(options_.needed_from), 0, options_.needed_from,
                    found_.front().header.first - 1, "the oldest segment begins only after these records");
  }
  while (needed_ + 1 < found_.size() && found_[needed_ + 1].header.first <= options_.needed_from) ++needed_;

  for (std::size_t index = needed_ + 1; index < found_.size(); ++index) {
    const SegmentHeader& before = found_[index - 1].header;
    const SegmentHeader& header = found_[index].header;
    if (header.previous.first != before.first && header.number > before.number + 1) {
      return complain(ProblemKind::missing_segment, segment_path(header.previous.first), 0,
                      header.previous.first, header.previous.last,
                      fmt::format("the segment before {} is missing", found_[index].path));
    }
    if (header.previous.first != before.first || header.number != before.number + 1 ||
        header.epoch < before.epoch) {
      return complain(ProblemKind::corrupt, found_[index].path, 0, header.first, 0,
                      fmt::format("the segment does not continue {}", found_[index - 1].path));
    }
  }
  return true;
}

Result<bool> Surveyor::read_older_segments() {
  if (options_.older == Older::skip) return true;
  for (std::size_t index = 0; index < needed_; ++index) {
    const PreviousLink& link = found_[index + 1].header.previous;
    const bool pinned = link.first == found_[index].header.first;
    time_ = found_[index].header.created;
    if (pinned) {
      auto whole = read_sealed(found_[index], link, older_visitor());
      if (!whole || !*whole) return whole;
      continue;
    }
    auto whole = read_unpinned(found_[index], found_[index + 1].header);
    if (!whole || !*whole) return whole;
    survey_.segments[index].last = survey_.report.last;
  }
  return true;
}

// The segment that followed was removed, and with it went the word about where this one ends.
Result<bool> Surveyor::read_unpinned(FoundSegment& segment, const SegmentHeader& next) {
  ++survey_.report.segments;
  auto file = open(segment.path, false);
  if (!file) return std::unexpected(file.error());
  FileWindow window(**file, segment.bytes);
  SegmentReader reader(window, segment.header, segment.header.created);
  for (;;) {
    auto taken = take_batch(reader, older_visitor());
    if (!taken) return taken;
    if (!*taken) break;
  }
  const Position& at = reader.position();
  auto verdict = judge_unpinned(window, segment.header, at, next);
  if (!verdict) return std::unexpected(verdict.error());
  if (verdict->kind == TailKind::corrupt) {
    return complain(ProblemKind::corrupt, segment.path, at.end, at.last + 1, 0,
                    reader.complaint() + "; " + verdict->reason);
  }
  if (at.last >= next.first) {
    return complain(ProblemKind::corrupt, segment.path, at.end, next.first, at.last,
                    "the segment reaches into the next one");
  }
  return true;
}

Result<bool> Surveyor::read_needed_segments() {
  if (found_.empty()) return true;
  time_ = found_[needed_].header.created;
  for (std::size_t index = needed_; index + 1 < found_.size(); ++index) {
    auto whole = read_sealed(found_[index], found_[index + 1].header.previous, options_.visitor);
    if (!whole || !*whole) return whole;
  }
  return read_newest(found_.back());
}

Result<bool> Surveyor::take_batch(SegmentReader& reader, const Visitor& visitor) {
  LogReport& report = survey_.report;
  const auto taken = reader.next();
  if (!taken || !*taken) return taken;
  const BatchHeader& batch = reader.batch();
  if (report.records == 0) {
    report.first = batch.first;
    report.first_time = batch.time;
    report.first_epoch = batch.epoch;
  }
  if (report.ranges.empty() || report.ranges.back().last + 1 != batch.first)
    report.ranges.push_back({.first = batch.first});
  report.ranges.back().last = reader.position().last;
  ++report.batches;
  report.records += batch.count;
  report.last = reader.position().last;
  report.last_time = reader.position().time;
  report.last_epoch = batch.epoch;
  if (visitor) {
    if (auto visited = reader.visit(options_.older == Older::visit ? 1 : options_.needed_from, visitor);
        !visited)
      return std::unexpected(visited.error());
  }
  return true;
}

Result<bool> Surveyor::read_sealed(FoundSegment& segment, const PreviousLink& end, const Visitor& visitor) {
  ++survey_.report.segments;
  auto file = open(segment.path, false);
  if (!file) return std::unexpected(file.error());
  FileWindow window(**file, segment.bytes);
  SegmentReader reader(window, segment.header, time_);
  while (reader.position().end < end.end) {
    auto taken = take_batch(reader, visitor);
    if (!taken) return taken;
    if (!*taken) {
      return complain(ProblemKind::corrupt, segment.path, reader.position().end, reader.position().last + 1,
                      end.last, reader.complaint());
    }
  }
  const Position& at = reader.position();
  if (at.end != end.end || at.last != end.last || at.chain != end.chain) {
    return complain(ProblemKind::corrupt, segment.path, at.end, segment.header.first, end.last,
                    "the segment is not the one that its successor continues");
  }
  time_ = at.time;
  return true;
}

// Where somebody is writing, the batch that was not there a moment ago may be there by now, and others behind
// it: what looks like damage is looked at again. A batch that has once been proven to be acknowledged is
// there for good, and one on its way gets there, so what cannot be read time and again is damaged.
Result<TailVerdict> Surveyor::read_to_tail(SegmentReader& reader, FileWindow& window,
                                           const SegmentHeader& header) {
  constexpr int kLooks = 8;
  std::uint64_t stuck_at = 0;
  for (int looks = 1;; ++looks) {
    for (;;) {
      auto taken = take_batch(reader, options_.visitor);
      if (!taken) return std::unexpected(taken.error());
      if (!*taken) break;
    }
    auto verdict = judge_tail(window, header, reader.position(), *survey_.control);
    if (!verdict || verdict->kind != TailKind::corrupt || !survey_.report.in_use) return verdict;
    if (reader.position().end != stuck_at) looks = 1;
    if (looks == kLooks) return verdict;
    stuck_at = reader.position().end;
    window.forget();
  }
}

Result<bool> Surveyor::read_newest(FoundSegment& segment) {
  ++survey_.report.segments;
  if (segment.bytes != segment.header.file_bytes) {
    return complain(
        ProblemKind::corrupt, segment.path, segment.bytes, segment.header.first, 0,
        fmt::format("the file is {} bytes long instead of {}", segment.bytes, segment.header.file_bytes));
  }
  auto file = open(segment.path, true);
  if (!file) return std::unexpected(file.error());
  FileWindow window(**file, segment.bytes);
  SegmentReader reader(window, segment.header, time_);
  auto verdict = read_to_tail(reader, window, segment.header);
  if (!verdict) return std::unexpected(verdict.error());
  const Position& at = reader.position();
  if (verdict->kind == TailKind::corrupt || at.last < segment.header.first) {
    return complain(ProblemKind::corrupt, segment.path, at.end, at.last + 1, 0,
                    reader.complaint() + "; " + verdict->reason);
  }
  survey_.segments.back().last = at.last;
  survey_.end = {.tail = {.first = segment.header.first, .last = at.last, .end = at.end, .chain = at.chain},
                 .number = segment.header.number,
                 .time = at.time,
                 .epoch = segment.header.epoch};
  if (!check_end()) return false;
  if (verdict->kind == TailKind::torn && !survey_.report.in_use) {
    survey_.damage_end = verdict->damage_end;
    complain(
        ProblemKind::torn_tail, segment.path, at.end, at.last + 1, 0,
        fmt::format("{} bytes that look like a batch cut off by a power failure, of which nobody was told; a "
                    "start sets it aside in torn/",
                    verdict->damage_end - at.end));
  }
  return true;
}

// The log may not end before what others know of it.
bool Surveyor::check_end() {
  const Lsn last = survey_.end.tail.last;
  const std::string path = found_.empty() ? "wal" : found_.back().path;
  const Lsn durable = survey_.control ? survey_.control->durable : 0;
  const Lsn promised = std::max(durable + 1, options_.needed_from) - 1;
  const auto kind = found_.empty() ? ProblemKind::missing_segment : ProblemKind::corrupt;
  if (last < promised) {
    return complain(kind, path, survey_.end.tail.end, last + 1, promised,
                    "the log ends here, and these records are known to have been acknowledged");
  }
  if (survey_.report.clean && last != durable) {
    return complain(kind, path, survey_.end.tail.end, durable + 1, last,
                    "the log was closed cleanly before these records");
  }
  return true;
}

}  // namespace

std::string to_text(const std::vector<LsnRange>& ranges) {
  std::string text;
  for (const LsnRange& range : ranges)
    text += fmt::format("{}{} to {}", text.empty() ? "" : ", ", range.first, range.last);
  return text.empty() ? "nothing" : text;
}

Result<Survey> survey_log(Disk& disk, const SurveyOptions& options) { return Surveyor(disk, options).run(); }

bool has_segments(Disk& disk) {
  const auto names = disk.list("wal");
  return names &&
         std::ranges::any_of(*names, [](const auto& name) { return segment_first_lsn(name).has_value(); });
}

Result<LogReport> verify_log(Disk& disk, Lsn needed_from) {
  auto survey = survey_log(disk, {.needed_from = needed_from, .older = Older::check});
  if (!survey) return std::unexpected(survey.error());
  return survey->report;
}

}  // namespace baton::log
