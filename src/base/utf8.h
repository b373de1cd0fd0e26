// Whether bytes are UTF-8 (RFC 3629).
#pragma once

#include <cstddef>
#include <string_view>

namespace baton {

bool is_utf8(std::string_view text);
// Of the first character; 0: it is none.
std::size_t utf8_character_bytes(std::string_view text);
// Its beginning, of so many bytes at most, without a part of a character at its end.
std::string_view utf8_beginning(std::string_view text, std::size_t bytes_max);

}  // namespace baton
