// The server's state as Prometheus reads it.
#pragma once

#include <string>

#include "server/access.h"
#include "server/desk.h"

namespace baton::server {

// Queues are those that whoever asks may query.
std::string metrics_text(const Desk& desk, const Principal* who);

}  // namespace baton::server
