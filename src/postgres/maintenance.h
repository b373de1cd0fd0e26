// Forgetting what is past its time: ids the inbox has seen, messages that debug mode kept, idle streams,
// tombstones.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "postgres/connection.h"

namespace baton::postgres {

// A bounded amount in each transaction, until nothing is left or somebody else is at it. How much it was.
Result<std::uint64_t> maintain(Connection& connection, std::stop_token stop = {});
Result<std::uint64_t> maintain(const std::string& url);

}  // namespace baton::postgres
