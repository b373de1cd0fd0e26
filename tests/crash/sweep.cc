#include "tests/crash/sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/recovery.h"
#include "engine/verify.h"

namespace baton::crash {
namespace {

using log::kSectorBytes;
using sim::SimDisk;

// Calls `each` with every reference to bytes in the log that the state holds.
void for_each_blob(const core::State& state, const std::function<void(const core::BlobRef&)>& each) {
  for (core::Slot slot = state.ids.first_from(0); slot != 0;
       slot = state.ids.first_from(state.tasks[slot].lsn + 1)) {
    const core::Task& task = state.tasks[slot];
    if (task.payload.length > 0) each(task.payload);
    for (core::Slot at = task.endings; at != 0; at = state.endings[at].next) {
      if (state.endings[at].note.length > 0) each(state.endings[at].note);
    }
  }
}

bool all_bytes_are_there(log::Disk& disk, const core::State& state,
                         const std::vector<log::SegmentInfo>& list) {
  log::Segments segments(disk, list);
  bool all = true;
  for_each_blob(state, [&](const core::BlobRef& blob) {
    const auto bytes = segments.read(blob.lsn, blob.offset, blob.length);
    all = all && bytes && content_hash(*bytes) == blob.hash;
  });
  return all;
}

}  // namespace

std::string Sweep::summary() const {
  return fmt::format("{} cases: {} refused, {} unharmed, {} found when read, {} without the last batch",
                     cases, refused, unharmed, found_later, dropped);
}

Sweeper::Sweeper(Ending ending, unsigned thin_out)
    : ending_(ending), thin_out_(thin_out), directory_(small_directory(ending)) {}

void Sweeper::violate(const std::string& what) {
  if (sweep_.violation.empty()) sweep_.violation = what;
}

void Sweeper::judge(const std::string& what, const Damage& damage, Finds verify) {
  if (!sweep_.violation.empty()) return;
  ++sweep_.cases;
  SimDisk disk(directory_->disk);
  damage(disk);
  auto recovered = engine::recover(disk, {.log = kSweptLog});
  if (!recovered) {
    ++sweep_.refused;
    const Error& error = recovered.error();
    if (error.code != Errc::corrupt && error.code != Errc::unsupported_version) {
      violate(fmt::format("{}: refused as {}: {}", what, word(error.code), error.message));
    }
    if (error.message.empty()) violate(what + ": refused without a word");
    return;
  }
  const core::Lsn last = recovered->state.last;
  const auto expected = directory_->digests.find(last);
  const core::Lsn least = ending_ == Ending::closed ? directory_->last : directory_->before_last_batch;
  if (last < least || expected == directory_->digests.end()) {
    return violate(fmt::format("{}: silently ends at entry {} of {}", what, last, directory_->last));
  }
  if (expected->second != recovered->state.digest) return violate(what + ": the state differs");
  if (last < directory_->last) {
    ++sweep_.dropped;
    return;
  }
  const bool unharmed = all_bytes_are_there(disk, recovered->state, recovered->log.writer->segments().list());
  ++(unharmed ? sweep_.unharmed : sweep_.found_later);
  if (unharmed && verify == Finds::may) return;
  SimDisk again(directory_->disk);
  damage(again);
  const auto report = engine::verify(again, false);
  if (!report || report->finding == engine::Finding::intact) violate(what + ": verify does not find it");
}

// In a sector of zeros, or of one letter, one bit is like the next.
bool Sweeper::is_dull(const Bytes& content, std::size_t offset) const {
  const std::size_t sector = offset / kSectorBytes * kSectorBytes;
  const ByteView bytes = ByteView(content).subspan(sector, std::min(kSectorBytes, content.size() - sector));
  return std::ranges::adjacent_find(bytes, std::ranges::not_equal_to()) == bytes.end();
}

Sweep Sweeper::flipped_bits() {
  sweep_ = {};
  for (const std::string& path : directory_->files) {
    const Bytes content = directory_->disk.content(path);
    for (std::size_t offset = 0; offset < content.size(); ++offset) {
      const std::size_t step = is_dull(content, offset) ? std::size_t{thin_out_} * 37 : thin_out_;
      for (unsigned bit = 0; bit < 8; ++bit) {
        if ((offset * 8 + bit) % step != 0) continue;
        judge(
            fmt::format("bit {} of byte {} of {}", bit, offset, path),
            [&](SimDisk& disk) { disk.flip_bit(path, offset, bit); },
            offset < directory_->counted_bytes.at(path) ? Finds::must : Finds::may);
      }
    }
  }
  return sweep_;
}

Sweep Sweeper::zeroed_sectors() {
  sweep_ = {};
  for (const std::string& path : directory_->files) {
    const Bytes content = directory_->disk.content(path);
    for (std::size_t offset = 0; offset < content.size(); offset += kSectorBytes) {
      Bytes changed = content;
      const std::size_t length = std::min(kSectorBytes, content.size() - offset);
      std::ranges::fill(std::span(changed).subspan(offset, length), std::byte{0});
      judge(fmt::format("sector at {} of {} zeroed", offset, path),
            [&](SimDisk& disk) { disk.set_content(path, changed); });
    }
  }
  return sweep_;
}

Sweep Sweeper::cut_files() {
  sweep_ = {};
  for (const std::string& path : directory_->files) {
    const Bytes content = directory_->disk.content(path);
    for (std::size_t length = 0; length < content.size(); ++length) {
      const std::size_t step = is_dull(content, length) ? std::size_t{thin_out_} * 37 : thin_out_;
      if (length % step != 0 && length % kSectorBytes > 1) continue;
      judge(
          fmt::format("{} cut to {} bytes", path, length),
          [&](SimDisk& disk) { disk.set_content(path, ByteView(content).first(length)); },
          length < directory_->counted_bytes.at(path) ? Finds::must : Finds::may);
    }
  }
  return sweep_;
}

Sweep Sweeper::shuffled_files() {
  sweep_ = {};
  const SimDisk& disk = directory_->disk;
  std::vector<std::string> both = directory_->segments;
  both.insert(both.end(), directory_->snapshots.begin(), directory_->snapshots.end());
  for (const std::string& path : both) {
    // Without its newest segment a log that was not closed is a shorter log. docs/log-format.md says so.
    const bool is_newest = path == directory_->segments.back();
    if (!is_newest || ending_ == Ending::closed) {
      judge(path + " removed", [&](SimDisk& it) { BATON_CHECK(it.remove(path).has_value()); });
      // As it was before its last block was written.
      Bytes older = disk.content(path);
      std::size_t used = older.size();
      while (used > 0 && older[used - 1] == std::byte{0}) --used;
      const std::size_t from = used == 0 ? 0 : (used - 1) / log::kBlockBytes * log::kBlockBytes;
      std::ranges::fill(std::span(older).subspan(from), std::byte{0});
      judge(path + " as it was before", [&](SimDisk& it) { it.set_content(path, older); });
    }
    for (const std::string& other : both) {
      if (path == other) continue;
      judge(fmt::format("{} under the name of {}", path, other),
            [&](SimDisk& it) { it.set_content(other, disk.content(path)); });
      judge(fmt::format("{} and {} swapped", path, other), [&](SimDisk& it) {
        it.set_content(other, disk.content(path));
        it.set_content(path, disk.content(other));
      });
    }
    const std::string copy = path.starts_with("wal/")
                                 ? log::segment_path(directory_->last + 100)
                                 : fmt::format("snap/{:016x}.snap", directory_->last + 100);
    judge(path + " copied to a new name", [&](SimDisk& it) { it.set_content(copy, disk.content(path)); });
  }
  judge("CONTROL removed", [&](SimDisk& it) { BATON_CHECK(it.remove("CONTROL").has_value()); });
  judge("no snapshots", [&](SimDisk& it) {
    for (const std::string& path : directory_->snapshots) BATON_CHECK(it.remove(path).has_value());
  });
  judge("no segments", [&](SimDisk& it) {
    for (const std::string& path : directory_->segments) BATON_CHECK(it.remove(path).has_value());
  });
  return sweep_;
}

}  // namespace baton::crash
