// Processes as ranks, which meet at a coordinator.
//
//   auto ranks = join_at_server({.client = {.addresses = {"10.0.0.1:7077"}}, .group = "run-17",
//                                .rank = 3, .world_size = 8});
//   (*ranks)->barrier({"epoch_end", seconds(30)});
//
// A thread of its own tells the coordinator that the rank is alive, whatever the program does meanwhile. When
// the coordinator is started again, the ranks put the group together and go on where they were.
#pragma once

#include <memory>
#include <string>

#include "checkpoint/collective.h"
#include "client/client.h"

namespace baton::checkpoint {

struct ServerCollectiveOptions {
  client::ClientOptions client;
  std::string group;  // the same at all ranks of a job
  Rank rank = 0;
  Rank world_size = 1;
  Duration time_to_live = seconds(10);   // after so much silence a rank is given up
  Duration join_deadline = seconds(30);  // also for ranks of an older group to be gone, or to join again
};

// Joins, and leaves when the Collective goes. A rank that joins while another process has its place begins a
// new generation, in which every rank has to join again.
Result<std::unique_ptr<Collective>> join_at_server(const ServerCollectiveOptions& options);

}  // namespace baton::checkpoint
