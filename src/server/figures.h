// What a server can say about itself in numbers, taken at one moment.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/authority.h"
#include "server/counters.h"

namespace baton::server {

struct Figures {
  Duration uptime;
  std::uint64_t epoch = 0;
  Duration recovery_took;
  std::uint64_t memory_bytes = 0;  // resident
  std::uint64_t connections_resp = 0;
  std::uint64_t connections_http = 0;
  std::uint64_t connections_total = 0;
  std::uint64_t workers = 0;  // heard of in the last ten minutes
  std::uint64_t leases = 0;
  std::uint64_t commands = 0;  // verbs begun since the start
  std::uint64_t refusals = 0;  // since the start
  std::uint64_t last_lsn = 0;
  std::uint64_t durable_lag = 0;  // entries recorded and not yet durable
  std::uint64_t flushes = 0;      // these and what follows: since the start
  std::uint64_t flush_p50_us = 0;
  std::uint64_t flush_p99_us = 0;
  std::uint64_t flushed_entries = 0;
  std::uint64_t flushed_bytes = 0;

  std::uint64_t disk_free_bytes = 0;
  engine::Admission admission = engine::Admission::open;  // what the disk has room for

  std::uint64_t batch_entries() const { return flushes == 0 ? 0 : flushed_entries / flushes; }
};

Figures figures(const engine::Authority& authority, const Counters& counters);

// "ok"; "nearly_full": submissions are refused; "full": so is everything that may need an entry.
std::string_view disk_word(engine::Admission admission);

std::uint64_t resident_bytes();  // memory of this process

}  // namespace baton::server
