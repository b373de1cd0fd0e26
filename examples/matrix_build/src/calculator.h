#pragma once

#include <string_view>

// Numbers with + and - between them, from left to right: "1 + 2 - 3".
long sum_of(std::string_view text);
