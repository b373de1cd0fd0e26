#pragma once

#include <string>

namespace baton {

std::string random_name();  // 16 hex digits that nobody else has

}  // namespace baton
