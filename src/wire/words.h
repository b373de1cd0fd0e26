// The words of a line that a person typed, as redis-cli and shells take them apart: blanks separate, quotes
// hold together.
//
//   SUBMIT mail "hello \x41\n" 'it\'s'
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::wire {

// The words, one after the other, go behind `text`; where each begins and how long it is, behind `places`.
// False if a quote has no end, or something follows it without a blank.
bool split_words(std::string_view line, std::string& text,
                 std::vector<std::pair<std::size_t, std::size_t>>& places);

}  // namespace baton::wire
