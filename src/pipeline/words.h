// Numbers as messages have them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/time.h"

namespace baton::pipeline {

std::string in_words(Duration time);  // in the largest unit that says it exactly: 90 s, 2 min, 1500 ms
std::string counted(std::size_t number, std::string_view what);  // 1 module, 2 modules

}  // namespace baton::pipeline
