// A file of settings: whatever is in it is taken or refused with its line, and what is taken is in range.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cli/serve.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace baton;
  // Making the settings takes longer than reading a file of them.
  static cli::ServeOptions options;
  static const cli::Settings settings = cli::settings_of(options);
  options = {};
  const auto read = cli::read_settings(settings, {reinterpret_cast<const char*>(data), size}, "f");
  if (!read) BATON_CHECK(read.error().message.starts_with("f:"));
  BATON_CHECK(options.server.limits.connections_max >= 1 &&
              options.server.limits.connections_max <= 1'000'000);
  BATON_CHECK(options.server.limits.stuck_max >= milliseconds(100));
  BATON_CHECK(options.server.coordinator.engine.rules.payload_bytes_max <= 1'000'000);
  return 0;
}
