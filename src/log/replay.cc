#include "log/replay.h"

#include <fmt/format.h>

#include "log/format.h"

namespace baton::log {
namespace {

Status replay_segment(Disk& disk, const SegmentInfo& segment, Lsn from, Lsn to, const Visitor& visitor) {
  auto file = disk.open(segment_path(segment.first));
  if (!file) return std::unexpected(file.error());
  auto bytes = (*file)->size();
  if (!bytes) return std::unexpected(bytes.error());
  FileWindow window(**file, *bytes);
  auto head = window.at(0, kSegmentHeaderBytes);
  if (!head) return std::unexpected(head.error());
  auto header = decode_segment_header(*head);
  if (!header) return std::unexpected(header.error());

  const Visitor within = [&](const Record& record) -> Status {
    return record.place.lsn <= to ? visitor(record) : Status{};
  };
  SegmentReader reader(window, *header, header->created);
  const Lsn last = std::min(segment.last, to);
  while (reader.position().last < last) {
    auto found = reader.next();
    if (!found) return std::unexpected(found.error());
    if (!*found) {
      return failure(Errc::corrupt,
                     fmt::format("{} is damaged at offset {}: {}; run `baton log verify` and restore "
                                 "from a backup",
                                 segment_path(segment.first), reader.position().end, reader.complaint()));
    }
    if (auto visited = reader.visit(from, within); !visited) return visited;
  }
  return {};
}

}  // namespace

Status replay_sealed(Disk& disk, const Segments& segments, Lsn from, Lsn to, const Visitor& visitor) {
  for (const SegmentInfo& segment : segments.list()) {
    if (segment.last < from || segment.first > to) continue;
    if (auto done = replay_segment(disk, segment, from, to, visitor); !done) return done;
  }
  return {};
}

}  // namespace baton::log
