// Any bytes as replies: the same values, or the same complaint, whether they come at once or one by one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "wire/resp_value.h"

namespace {

using baton::wire::RespValue;
using baton::wire::RespValueParser;

// A description that two equal values share; NaN is unlike itself.
void describe(const RespValue& value, std::string& out) {
  out += static_cast<char>('a' + static_cast<int>(value.type));
  out += value.truth ? 't' : 'f';
  out += std::to_string(value.number) + '/' + std::to_string(value.real) + '/' + value.text + '[';
  for (const RespValue& item : value.items) describe(item, out);
  out += ']';
}

std::string read(std::string_view stream, std::size_t piece) {
  RespValueParser parser({.depth_max = 8, .items_max = 1000, .bytes_max = 4096, .line_bytes_max = 512});
  std::string out;
  std::string_view input(stream.data(), 0);
  for (std::size_t fed = 0; fed < stream.size();) {
    const std::size_t more = std::min(piece, stream.size() - fed);
    input = {input.data(), input.size() + more};
    fed += more;
    RespValueParser::Found found;
    while ((found = parser.parse(input)) == RespValueParser::Found::value) describe(parser.take(), out);
    if (found == RespValueParser::Found::broken) return out + std::string(parser.complaint());
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view stream(reinterpret_cast<const char*>(data), size);
  const std::string whole = read(stream, size);
  BATON_CHECK(read(stream, 1) == whole);
  BATON_CHECK(read(stream, 7) == whole);
  return 0;
}
