// Text on the wire: what is readable of it, JSON strings, base64.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace baton::wire {

// What is not well-formed in it is shown as U+FFFD, a byte each.
std::string as_utf8(std::string_view text);

// With its quotes. `text` is UTF-8.
void put_json_string(std::string& out, std::string_view text);

void put_base64(std::string& out, std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);  // padded, nothing else in it

}  // namespace baton::wire
