// Whether a text is JSON, where no database says so. And what is made of one that is not even UTF-8, where it
// has to be told all the same.
#pragma once

#include <string>
#include <string_view>

namespace baton::stream {

bool is_json(std::string_view text);  // one value of any kind, up to 100 deep, and UTF-8
// What every coordinator takes: so many bytes at most, and a '?' for each that is zero or no UTF-8.
std::string as_utf8(std::string_view text, std::size_t bytes_max);

}  // namespace baton::stream
