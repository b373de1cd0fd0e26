#include "pipeline/worker_site.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace baton::pipeline {

std::shared_ptr<NearBlobs> near_blobs(const Site& site, DistributedCoordinator& coordinator) {
  const bool is_far = site.blobs == nullptr && coordinator.blobs() != nullptr;
  return is_far ? std::make_shared<NearBlobs>(*coordinator.blobs()) : nullptr;
}

WorkerOptions completed(WorkerOptions options, const std::shared_ptr<NearBlobs>& near,
                        const std::shared_ptr<LogBook>& book) {
  if (near) options.site.blobs = near.get();
  if (options.processors == 0) options.processors = std::max(1U, std::thread::hardware_concurrency());
  options.site.log = [book, also = std::move(options.site.log)](const LogLine& line) {
    if (also) also(line);
    book->add(line);
  };
  return options;
}

std::shared_ptr<const Site> lasting(const Site& site, const std::shared_ptr<NearBlobs>& near) {
  struct Equipment {
    Site site;
    std::shared_ptr<NearBlobs> near;
  };
  const auto all = std::make_shared<const Equipment>(site, near);
  return {all, &all->site};
}

}  // namespace baton::pipeline
