// The HTTP interface as an OpenAPI 3.1 document, made from the table of verbs.
#pragma once

#include <string>

namespace baton::server {

// It is the same for as long as the program runs, and made once.
const std::string& openapi_json();

}  // namespace baton::server
