// The least a durable server can do: see start_floor().
#pragma once

#include <cstdint>
#include <string>

namespace baton::bench {

[[noreturn]] void run_floor(std::uint16_t port, const std::string& log_path);

}  // namespace baton::bench
