// Waiting between two attempts.
#pragma once

#include <stop_token>

#include "base/time.h"

namespace baton::postgres {

bool pause(Duration duration, std::stop_token stop);  // false if it was stopped

}  // namespace baton::postgres
