#include "pipeline/run.h"

#include <algorithm>
#include <thread>

#include "base/random_name.h"
#include "pipeline/master.h"
#include "pipeline/reservation.h"

namespace baton::pipeline {

RunReport run(const Graph& graph, RunOptions options) {
  if (options.run.empty()) options.run = make_run_id();
  if (options.jobs == 0)
    options.jobs = options.is_only_master ? 1 : std::max(1U, std::thread::hardware_concurrency());
  options.site.run = options.run;
  options.site.capabilities = with_unreserved(std::move(options.site.capabilities));
  return Master(graph, std::move(options)).run();
}

std::vector<std::string> detected_capabilities() { return {"linux"}; }

std::string make_run_id() { return "run-" + random_name(); }

}  // namespace baton::pipeline
