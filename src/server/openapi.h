// The HTTP interface as an OpenAPI 3.1 document, made from the table of verbs.
#pragma once

#include <string>

namespace baton::server {

std::string openapi_json();

}  // namespace baton::server
