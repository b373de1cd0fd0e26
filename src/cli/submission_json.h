// A task as a line of JSON, with the protocol's names: {"queue": "mail", "payload": "hello", "priority": 3}
#pragma once

#include <string_view>

#include "base/result.h"
#include "client/types.h"

namespace baton::cli {

// What the line does not say is as in `defaults`.
Result<client::Submit> parse_submission(std::string_view line, const client::Submit& defaults);

}  // namespace baton::cli
