// The server's state as Prometheus reads it.
#pragma once

#include <string>

#include "engine/authority.h"
#include "server/counters.h"

namespace baton::server {

std::string metrics_text(const engine::Authority& authority, const Counters& counters);

}  // namespace baton::server
