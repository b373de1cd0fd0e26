// A small data directory, made by the library on a real disk and then held in memory, where it can be damaged
// a hundred thousand times a minute. It has a segment that only a payload keeps alive, gaps on both
// sides of it, two snapshots, and entries behind the newest.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ids.h"
#include "log/format.h"
#include "tests/sim/sim_disk.h"

namespace baton::crash {

inline constexpr log::Options kSweptLog{.segment_bytes = 48 << 10, .batch_bytes = 16 << 10};

enum class Ending { closed, killed };

struct SmallDirectory {
  sim::SimDisk disk;
  std::vector<std::string> files;  // paths of all that count
  std::vector<std::string> segments;
  std::vector<std::string> snapshots;
  std::map<std::string, std::uint64_t> counted_bytes;  // of each file; what follows is no part of the log
  core::Lsn last = 0;
  core::Lsn before_last_batch = 0;
  std::map<core::Lsn, std::uint64_t> digests;  // of the state after each entry behind the oldest snapshot
};

std::unique_ptr<SmallDirectory> small_directory(Ending ending);

// Copies a directory on a real disk into memory, and back.
void load_directory(const std::string& path, sim::SimDisk& disk, std::vector<std::string>& files);
void store_directory(const sim::SimDisk& disk, const std::vector<std::string>& files,
                     const std::string& path);

}  // namespace baton::crash
