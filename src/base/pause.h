#pragma once

#include <stop_token>

#include "base/time.h"

namespace baton {

// Until the time is over or the token is triggered. True: it was.
bool pause(Duration duration, const std::stop_token& stop);

}  // namespace baton
