// Whether bytes are UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <string_view>

namespace baton {

bool is_utf8(std::string_view text);
// Of the first character; 0: it is none.
std::size_t utf8_character_bytes(std::string_view text);

}  // namespace baton
