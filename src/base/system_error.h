// How errno becomes an Error.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace baton {

// "cannot write /data/wal/…: No space left on device; …", with the code that the caller acts on.
Error system_error(int number, std::string_view doing, const std::string& path);

}  // namespace baton
