// "Did you mean …?"
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace baton::pipeline {

// " (did you mean 'build'?)", if one of them is close to the word; otherwise nothing.
std::string suggestion(std::string_view word, std::span<const std::string> among);

}  // namespace baton::pipeline
