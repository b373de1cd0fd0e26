// Starts the process under test again and again on one directory, kills it at a random moment, and looks
// whether what it had acknowledged is there when the next one starts.
#pragma once

#include <cstdint>
#include <string>

#include "tests/crash/expectation.h"

namespace baton::crash {

enum class Cut {
  kill,   // SIGKILL: the kernel still has all that was written
  power,  // the same under the shim: what was not synced is gone, or torn
};

struct LoopOptions {
  Cut cut = Cut::kill;
  std::uint64_t seed = 1;
  unsigned rounds = 40;
  unsigned rounds_per_directory = 20;  // then a new one, so that what has to be compared stays small
  std::string worker = BATON_CRASH_WORKER;
  int mutant = 0;
  bool fail_syncs = false;  // in each round one sync fails and loses its data; needs the shim
  bool stop_early = false;  // at the first complaint
};

struct LoopResult {
  Tally tally;
  unsigned rounds = 0;
  unsigned killed_while_starting = 0;
  unsigned killed_in_flush = 0;  // with the shim: a sync had begun and not ended
  unsigned ended_with_74 = 0;    // as it should after a failed sync
  unsigned stopped = 0;          // rounds with SIGSTOP and SIGCONT
  unsigned verified = 0;         // directories that were read to the last byte
  unsigned torn = 0;             // of them with a torn tail
  std::uint64_t sectors_early = 0;
  std::uint64_t refused_starts = 0;
  std::string summary() const;
};

LoopResult run_crash_loop(const LoopOptions& options);

}  // namespace baton::crash
