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

struct Maintained {
  std::uint64_t forgotten = 0;
  bool has_more = false;  // perhaps: this was as much as may be done at once
};

// A bounded amount. Nothing, if somebody else is at it or has done it less than `unless_within` ago.
std::expected<Maintained, Trouble> maintain(Connection& connection, Duration unless_within,
                                            std::stop_token stop = {});
// All there is, unless somebody else is at it. How much it was.
Result<std::uint64_t> maintain(const std::string& url);

}  // namespace baton::postgres
