// Forgetting what is past its time: ids the inbox has seen, messages that debug mode kept, idle streams,
// tombstones.
#pragma once

#include <cstdint>
#include <expected>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "postgres/connection.h"

namespace baton::postgres {

// A bounded amount in each transaction, until nothing is left or somebody else is at it. How much it was:
// nothing, if somebody has done it less than `unless_within` ago.
std::expected<std::uint64_t, Trouble> maintain(Connection& connection, Duration unless_within,
                                               std::stop_token stop = {});
Result<std::uint64_t> maintain(const std::string& url);

}  // namespace baton::postgres
