// Whether a text is JSON, and whether it is UTF-8 at all: where no database says so.
#pragma once

#include <string_view>

namespace baton::stream {

bool is_json(std::string_view text);  // one value of any kind, up to 100 deep, and UTF-8
bool is_utf8(std::string_view text);

}  // namespace baton::stream
