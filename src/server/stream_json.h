// Lists of a call about streams, as JSON: [{"message": "…", "status": 4}, …]. Members have the names of the
// fields in stream/work.h. Data, metadata and scope are JSON themselves.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "stream/work.h"

namespace baton::server {

Status read_json(std::string_view text, std::vector<stream::Completion>& into);
Status read_json(std::string_view text, std::vector<stream::Failure>& into);
Status read_json(std::string_view text, std::vector<stream::Held>& into);
Status read_json(std::string_view text, std::vector<stream::NewMessage>& into);
Status read_json(std::string_view text, std::vector<stream::ReceptorResult>& into);
Status read_json(std::string_view text, std::vector<stream::PerspectiveResult>& into);

}  // namespace baton::server
