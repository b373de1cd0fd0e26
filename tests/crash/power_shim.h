// libpower_shim.so, loaded with LD_PRELOAD, turns `kill -9` into a power cut: what a process writes under one
// directory stays in its own memory until it is synced, in sectors, and a name until its directory is.
//
//   pwrite --> memory --fdatasync--> the real file        rename, unlink, create, mkdir --fsync of the
//              (a random part may go early, in any order)               directory--> the real directory
//   pwritev2 with RWF_DSYNC is both
//
// It is set up by environment variables, and shares a page of counters with whoever started the process.
#pragma once

#include <atomic>
#include <cstdint>

namespace baton::crash {

inline constexpr const char* kShimDirectory = "POWER_SHIM_DIRECTORY";  // absolute; nothing else is touched
inline constexpr const char* kShimPage = "POWER_SHIM_PAGE";            // file of sizeof(ShimPage) bytes
inline constexpr const char* kShimSeed = "POWER_SHIM_SEED";
inline constexpr const char* kShimEarly = "POWER_SHIM_EARLY";  // percent of writes and renames with an effect
inline constexpr const char* kShimSyncUs = "POWER_SHIM_SYNC_US";  // how long a sync takes
// "KIND:N:ERROR:once" or "…:ever": the N-th call of this kind fails, and so do all later ones, or not. ERROR
// is EIO, ENOSPC, EINTR or SHORT (a write that takes only a part). A sync that fails with EIO loses its data.
inline constexpr const char* kShimFail = "POWER_SHIM_FAIL";

enum class Call : std::uint8_t { open, read, write, sync, sync_directory, rename, unlink, mkdir };
inline constexpr const char* kCallNames[] = {"open",           "read",   "write",  "sync",
                                             "sync_directory", "rename", "unlink", "mkdir"};
inline constexpr std::size_t kCalls = 8;

struct ShimPage {  // all zeros at the start
  std::atomic<std::uint64_t> calls[kCalls];
  std::atomic<std::uint64_t> syncs_begun;  // more than ended: the process died in the middle of one
  std::atomic<std::uint64_t> syncs_ended;
  std::atomic<std::uint64_t> sectors_early;  // reached the medium without a sync
  std::atomic<std::uint64_t> names_early;
  std::atomic<std::uint64_t> faults;
  std::atomic<std::uint64_t> capacity_bytes;  // set by the parent at any time; 0: no limit
};

}  // namespace baton::crash
