// What the process under test and the one that watches it agree on without talking: every payload follows
// from its key, and every result from its lease. So the watcher knows what should be there, and nothing that
// the process says about content has to be believed.
//
// The process says one line per event, written before ("…?") or after the call it is about:
//   s KEY TASK EXISTED         submitted                   r KEY TASK OLD      requeued
//   g TASK LEASE TTL ASKED ANSWERED HASH   leased          e TASK LEASE TTL ASKED     extended
//   c|f|l? TASK LEASE          about to complete, fail or release
//   c|f|l TASK LEASE OUTCOME   done; the outcome is the number of core::Ended, or "cancelled"
//   k? KEY, k KEY              cancel                      p? 0|1, p 0|1       resume, pause
//   z?, z COUNT                purge                       n                   snapshot made
//   x OPERATION CODE KEY       refused
// At the start, before anything else: what it recovered.
//   T TASK KEY QUEUE STATE ATTEMPT PAYLOAD NOTE LEASE OLD   Q paused   R NOW TASKS REPLAYED SNAPSHOT
// Hashes are hexadecimal; "-" stands for nothing, "!" for bytes that cannot be read.
#pragma once

#include <fmt/format.h>
#include <time.h>

#include <string>
#include <string_view>

#include "base/hash.h"

namespace baton::crash {

inline constexpr const char* kNamespace = "n";
inline constexpr const char* kKept = "kept";      // nothing is ever purged from this queue
inline constexpr const char* kPurged = "purged";  // finished tasks are, all the time
inline constexpr const char* kPaused = "paused";  // paused and resumed, all the time
inline constexpr unsigned kClients = 2;
inline constexpr unsigned kWorkers = 3;

inline std::string payload_of(std::string_view key) {
  const std::uint64_t hash = content_hash(bytes_of(key), 7);
  const std::size_t length = hash % 16 == 0 ? 3000 : 20 + hash % 700;
  std::string text(key);
  while (text.size() < length) text += fmt::format(" {:x}", content_hash(bytes_of(text)));
  return text;
}
inline std::string result_of(std::string_view task, std::string_view lease) {
  return fmt::format("result of {} under {}", task, lease);
}
inline std::string hash_text(std::string_view bytes) {
  return fmt::format("{:016x}", content_hash(bytes_of(bytes)));
}

// The clock that both processes share.
inline std::int64_t clock_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace baton::crash
