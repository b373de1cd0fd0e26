// Where the modules of a worker run: its site, with what the worker adds to it.
#pragma once

#include <memory>

#include "pipeline/coordinator.h"
#include "pipeline/log_book.h"
#include "pipeline/near_blobs.h"
#include "pipeline/worker.h"

namespace baton::pipeline {

// Copies of what the coordinator keeps, which may be far away. Null: the site has a place of its own, or
// there is none.
std::shared_ptr<NearBlobs> near_blobs(const Site& site, DistributedCoordinator& coordinator);

// With those, and with a book in which all is written down that modules say.
WorkerOptions completed(WorkerOptions options, const std::shared_ptr<NearBlobs>& near,
                        const std::shared_ptr<LogBook>& book);

// The site for modules that do not end, too.
std::shared_ptr<const Site> lasting(const Site& site, const std::shared_ptr<NearBlobs>& near);

}  // namespace baton::pipeline
