#include "log/backup.h"

#include <fmt/format.h>

#include <algorithm>

#include "log/control.h"
#include "log/segment_reader.h"
#include "log/tail.h"

namespace baton::log {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;

struct Source {
  Lsn first = 0;
  std::string path;
  std::unique_ptr<File> file;
  std::uint64_t bytes = 0;
  SegmentHeader header;
};

Result<Source> open_source(Disk& disk, Lsn first) {
  Source source{.first = first, .path = segment_path(first)};
  auto file = disk.open(source.path);
  if (!file) return std::unexpected(file.error());
  source.file = std::move(*file);
  auto bytes = source.file->size();
  if (!bytes) return std::unexpected(bytes.error());
  source.bytes = *bytes;
  Bytes head(kSegmentHeaderBytes);
  if (auto got = source.file->read(0, head); !got) return std::unexpected(got.error());
  auto header = decode_segment_header(head);
  if (!header) return failure(header.error().code, source.path + ": " + header.error().message);
  source.header = *header;
  return source;
}

std::unexpected<Error> damaged(const Source& source, const Position& end) {
  return failure(Errc::corrupt,
                 fmt::format("{} is damaged from offset {} on, record {}; run `baton log verify`",
                             source.path, end.end, end.last + 1));
}

// Where the part to copy ends: behind the batch that holds `durable`, or where the segment ends. That is
// where its successor says, if there is one.
Result<Position> end_of_copy(Source& source, Lsn durable, const SegmentHeader* next) {
  FileWindow window(*source.file, source.bytes);
  SegmentReader reader(window, source.header, source.header.created);
  while (reader.position().last < durable) {
    auto taken = reader.next();
    if (!taken) return std::unexpected(taken.error());
    if (!*taken) break;
  }
  if (reader.position().last > durable) {
    return failure(Errc::invalid_request, fmt::format("record {} is in the middle of a batch", durable));
  }
  const Position& end = reader.position();
  if (next == nullptr) return end;
  const PreviousLink& link = next->previous;
  if (link.first != source.first) {
    auto verdict = judge_unpinned(window, source.header, end, *next);
    if (!verdict) return std::unexpected(verdict.error());
    if (verdict->kind == TailKind::corrupt) return damaged(source, end);
  } else if (link.end != end.end || link.last != end.last || link.chain != end.chain) {
    return damaged(source, end);
  }
  return end;
}

Status copy_bytes(Source& source, Disk& to, std::uint64_t end) {
  auto made = to.create(source.path, end);
  if (!made) return std::unexpected(made.error());
  File& target = **made;
  // The header tells the file's length, so that a file cut by accident is noticed. This one is cut on
  // purpose.
  SegmentHeader header = source.header;
  header.file_bytes = end;
  Status done = target.write(0, encode(header));
  Bytes piece(kPieceBytes);
  for (std::uint64_t offset = kSegmentHeaderBytes; done && offset < end; offset += piece.size()) {
    piece.resize(std::min(kPieceBytes, end - offset));
    auto got = source.file->read(offset, piece);
    if (!got) return std::unexpected(got.error());
    if (*got != piece.size())
      return failure(Errc::corrupt, source.path + " became shorter while it was copied");
    done = target.write(offset, piece);
  }
  if (done) done = target.sync();
  return done;
}

}  // namespace

Result<CopiedLog> copy_log(Disk& from, Disk& to, Lsn durable) {
  auto control = read_control(from);
  if (!control) return std::unexpected(control.error());
  if (!*control) return failure(Errc::not_found, "there is no log to copy");
  if (auto there = read_control(to); !there || *there) {
    return failure(Errc::conflict, "the target holds a log already; choose an empty directory");
  }
  auto names = from.list("wal");
  if (!names) return std::unexpected(names.error());
  std::vector<Lsn> firsts;
  for (const std::string& name : *names) {
    if (const auto first = segment_first_lsn(name); first && *first <= durable) firsts.push_back(*first);
  }

  Status done = to.make_directory("wal");
  CopiedLog copied;
  for (std::size_t index = 0; done && index < firsts.size(); ++index) {
    auto source = open_source(from, firsts[index]);
    if (!source) return std::unexpected(source.error());
    std::optional<SegmentHeader> next;
    if (index + 1 < firsts.size()) {
      auto opened = open_source(from, firsts[index + 1]);
      if (!opened) return std::unexpected(opened.error());
      next = opened->header;
    }
    auto end = end_of_copy(*source, durable, next ? &*next : nullptr);
    if (!end) return std::unexpected(end.error());
    copied.last = end->last;
    copied.bytes += end->end;
    ++copied.segments;
    done = copy_bytes(*source, to, end->end);
  }
  if (done && copied.last != durable) {
    return failure(Errc::corrupt,
                   fmt::format("the log can be read only up to record {}, not {}; run `baton log "
                               "verify`",
                               copied.last, durable));
  }
  if (done) done = to.sync_directory("wal");
  // Last: without CONTROL the copy is not a log.
  if (done) done = replace_control(to, {.uuid = (*control)->uuid, .durable = durable, .clean = true});
  if (!done) return std::unexpected(done.error());
  return copied;
}

}  // namespace baton::log
