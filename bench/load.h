// The client: so many connections, so many requests in flight on each, one thread, the same for every peer.
#pragma once

#include <string>
#include <vector>

#include "peers.h"

namespace baton::bench {

struct Load {
  unsigned connections = 1;
  unsigned depth = 1;
  std::vector<Step> life;  // what happens to each task, in this order
  double seconds = 0.7;
};

struct Measured {
  double tasks_per_s = 0;  // lives that came to their end
  double p50_us = 0;       // of a request
  std::uint64_t failures = 0;
};

Measured run_load(const Peer& peer, const Load& load);
void submit_backlog(const Peer& peer, std::size_t tasks);

}  // namespace baton::bench
