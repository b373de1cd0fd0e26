#include "log/segments.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "log/format.h"

namespace baton::log {

Segments::Segments(Disk& disk, std::vector<SegmentInfo> found) : disk_(disk), found_(std::move(found)) {
  for (const SegmentInfo& segment : found_) segments_.emplace(segment.first, segment);
}

std::vector<SegmentInfo> Segments::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<SegmentInfo> all;
  for (const auto& [first, segment] : segments_) all.push_back(segment);
  return all;
}

void Segments::add(const SegmentInfo& segment) {
  const std::lock_guard lock(mutex_);
  BATON_CHECK(segments_.empty() || segments_.rbegin()->second.last < segment.first);
  segments_.emplace(segment.first, segment);
}

void Segments::extend_newest(Lsn last) {
  const std::lock_guard lock(mutex_);
  BATON_CHECK(!segments_.empty());
  segments_.rbegin()->second.last = last;
}

Status Segments::remove(Lsn first) {
  SegmentInfo leaving;
  {
    const std::lock_guard lock(mutex_);
    const auto found = segments_.find(first);
    if (found == segments_.end())
      return failure(Errc::not_found, fmt::format("there is no segment {}", segment_path(first)));
    if (std::next(found) == segments_.end()) {
      return failure(Errc::wrong_state,
                     fmt::format("{} is the newest segment and stays", segment_path(first)));
    }
    leaving = found->second;
    segments_.erase(found);
    open_.erase(first);  // before the file is unlinked: closing it afterwards would do the long work in here
  }
  // On the disk nothing happens but this, so a crash in between leaves what a lost unlink leaves.
  auto removed = disk_.remove(segment_path(first));
  if (!removed) {
    const std::lock_guard lock(mutex_);
    segments_.emplace(first, leaving);  // so that it is tried again
  }
  return removed;
}

Result<std::shared_ptr<File>> Segments::file_with(Lsn lsn) {
  const std::lock_guard lock(mutex_);
  const auto after = segments_.upper_bound(lsn);
  if (after == segments_.begin() || std::prev(after)->second.last < lsn) {
    const auto holds = [lsn](const SegmentInfo& segment) {
      return segment.first <= lsn && lsn <= segment.last;
    };
    const bool from_before = !found_.empty() && lsn <= found_.back().last;
    if (!from_before || std::ranges::any_of(found_, holds))
      return failure(Errc::not_found, fmt::format("the log no longer holds record {}", lsn));
    return failure(Errc::corrupt,
                   fmt::format("the segment in wal/ that held record {} is missing; run `baton log "
                               "verify` and restore from a backup",
                               lsn));
  }
  const Lsn first = std::prev(after)->first;
  auto cached = open_.find(first);
  if (cached == open_.end()) {
    auto opened = disk_.open(segment_path(first));
    if (!opened && opened.error().code == Errc::not_found) {
      return failure(Errc::corrupt,
                     fmt::format("{}, which holds record {}, is missing; restore from a backup",
                                 segment_path(first), lsn));
    }
    if (!opened) return std::unexpected(opened.error());
    if (open_.size() == kOpenSegmentsMax) {
      open_.erase(
          std::ranges::min_element(open_, {}, [](const auto& entry) { return entry.second.last_used; }));
    }
    cached = open_.emplace(first, OpenFile{std::move(*opened)}).first;
  }
  cached->second.last_used = ++uses_;
  return cached->second.file;
}

Result<Bytes> Segments::read(Lsn lsn, std::uint64_t offset, std::size_t length) {
  auto file = file_with(lsn);
  if (!file) return std::unexpected(file.error());
  Bytes bytes(length);
  auto got = (*file)->read(offset, bytes);
  if (!got) return std::unexpected(got.error());
  if (*got != length) {
    return failure(Errc::corrupt, fmt::format("the segment that holds record {} ends before offset {}; run "
                                              "`baton log verify` and restore from a backup",
                                              lsn, offset + length));
  }
  return bytes;
}

std::optional<Bytes> Segments::read_at_once(Lsn lsn, std::uint64_t offset, std::size_t length) {
  std::shared_ptr<File> file;
  {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return {};
    const auto after = segments_.upper_bound(lsn);
    if (after == segments_.begin() || std::prev(after)->second.last < lsn) return {};
    const auto open = open_.find(std::prev(after)->first);
    if (open == open_.end()) return {};
    open->second.last_used = ++uses_;
    file = open->second.file;
  }
  Bytes bytes(length);
  if (!file->read_at_once(offset, bytes)) return {};
  return bytes;
}

}  // namespace baton::log
