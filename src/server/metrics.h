// The server's state as Prometheus reads it.
#pragma once

#include <string>

#include "server/access.h"
#include "server/desk.h"
#include "server/page.h"

namespace baton::server {

// Queues are those that whoever asks may query.
std::string metrics_text(const Desk& desk, const Principal* who);
Page metrics_page(const Desk& desk, const PrincipalRef& who);

}  // namespace baton::server
