// Commands from the network: whatever comes, they are found alike in one piece and in two, stay within their
// limits, and point into what was given.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "wire/resp.h"

namespace {

using baton::wire::RespParser;

struct Found {
  std::vector<std::vector<std::string>> commands;
  bool broken = false;
  friend bool operator==(const Found&, const Found&) = default;
};

constexpr baton::wire::RespLimits kLimits{
    .arguments_max = 16, .command_bytes_max = 512, .line_bytes_max = 64};

Found read(std::string_view stream, std::size_t cut) {
  RespParser parser(kLimits);
  Found found;
  std::size_t begun = 0;
  for (const std::size_t end : {cut, stream.size()}) {
    for (;;) {
      const std::string piece(stream.substr(begun, end - begun));
      const auto step = parser.parse(piece);
      if (step == RespParser::Found::nothing) break;
      if (step == RespParser::Found::broken) {
        found.broken = true;
        return found;
      }
      BATON_CHECK(parser.consumed() > 0 && parser.consumed() <= piece.size());
      BATON_CHECK(parser.arguments().size() <= kLimits.arguments_max);
      auto& words = found.commands.emplace_back();
      const bool was_typed =
          piece[piece.find_first_not_of("\r\n")] != '*';  // its words are put together elsewhere
      for (const std::string_view word : parser.arguments()) {
        BATON_CHECK(was_typed || (word.data() >= piece.data() &&
                                  word.data() + word.size() <= piece.data() + piece.size()));
        words.emplace_back(word);
      }
      begun += parser.consumed();
    }
  }
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data + 1), size - 1);
  BATON_CHECK(read(stream, stream.size()) == read(stream, data[0] % (stream.size() + 1)));
  return 0;
}
