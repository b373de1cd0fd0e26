// One picture of `baton top`, made of what was asked at one moment and a moment before.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "client/types.h"

namespace baton::cli {

// What the coordinator said at one moment.
struct Sample {
  std::int64_t at_ms = 0;
  client::Stats stats;
  std::vector<client::QueueView> queues;
  std::vector<client::WorkerView> workers;
};

// Lines that fit. Rates are from `before` to `now`. The first line is `trouble`, if there is any.
std::vector<FrameLine> draw_frame(const Sample& before, const Sample& now, const std::string& where,
                                  const TerminalSize& size, const std::string& trouble = {});

// The same as JSON: stats, what happened per second, queues and workers.
std::string frame_json(const Sample& before, const Sample& now);

}  // namespace baton::cli
