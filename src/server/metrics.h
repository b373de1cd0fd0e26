// The server's state as Prometheus reads it.
#pragma once

#include <string>

#include "engine/authority.h"
#include "server/access.h"
#include "server/counters.h"

namespace baton::server {

// Queues are those that whoever asks may query.
std::string metrics_text(const engine::Authority& authority, const Counters& counters, const Principal* who);

}  // namespace baton::server
