// Lists of a call about streams as the coordinator reads them: see docs/protocol.md.
#pragma once

#include <string>
#include <vector>

#include "stream/work.h"

namespace baton::client {

std::string to_json(const std::vector<stream::NewMessage>& messages);
std::string to_json(const std::vector<stream::Completion>& completions);
std::string to_json(const std::vector<stream::Failure>& failures);
std::string to_json(const std::vector<stream::Held>& held);
std::string to_json(const std::vector<stream::ReceptorResult>& results);
std::string to_json(const std::vector<stream::PerspectiveResult>& results);

}  // namespace baton::client
