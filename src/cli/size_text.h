// Sizes as people write and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::cli {

// 4096, 256KiB, 64MiB, 2GiB. Nothing if it is none of these.
std::optional<std::uint64_t> parse_size(std::string_view text);

// As short as it can be: 64MiB, 1.5GiB, 812B.
std::string size_text(std::uint64_t bytes);

}  // namespace baton::cli
