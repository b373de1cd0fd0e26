#pragma once

#include <string>

namespace baton::checkpoint {

std::string random_digits();  // 16 of them, hexadecimal, that nobody else has

}  // namespace baton::checkpoint
