#include "server/figures.h"

#include <unistd.h>

#include <cstdio>

#include "base/check.h"

namespace baton::server {
namespace {

template <class Counts>
std::uint64_t sum(const Counts& counts) {
  std::uint64_t total = 0;
  for (const auto& [name, count] : counts) total += count;
  return total;
}

}  // namespace

Figures figures(const engine::Authority& authority, const Counters& counters) {
  const engine::Engine& engine = authority.engine();
  const log::FlushStats& flushes = authority.flush_stats();
  return {.uptime = engine.now() - counters.since,
          .epoch = engine.state().epoch,
          .recovery_took = authority.recovery().took,
          .memory_bytes = resident_bytes(),
          .connections_resp = counters.connections_resp,
          .connections_http = counters.connections_http,
          .connections_total = counters.connections_total,
          .workers = engine.workers().size(),
          .leases = engine.state().leases.used(),
          .commands = sum(counters.commands),
          .refusals = sum(counters.rejections),
          .last_lsn = engine.state().last,
          .durable_lag = engine.state().last - authority.durable(),
          .flushes = flushes.flushes,
          .flush_p50_us = flushes.quantile_us(0.5),
          .flush_p99_us = flushes.quantile_us(0.99),
          .flushed_entries = flushes.total_records,
          .flushed_bytes = flushes.total_bytes,
          .disk_free_bytes = authority.disk_free_bytes(),
          .admission = engine.admission()};
}

std::string_view disk_word(engine::Admission admission) {
  switch (admission) {
    case engine::Admission::open: return "ok";
    case engine::Admission::no_submissions: return "nearly_full";
    case engine::Admission::closed: return "full";
  }
  BATON_CHECK(false && "unknown admission");
}

std::uint64_t resident_bytes() {
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*u %lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace baton::server
