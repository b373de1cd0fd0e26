// Ids of 16 bytes, as PostgreSQL and most languages have them. Each kind is a type of its own, so that a
// stream cannot stand where a message is meant.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace baton::stream {

struct Uuid {
  std::array<std::byte, 16> bytes{};  // in the order in which they are written

  bool is_nil() const { return *this == Uuid{}; }
  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

std::string to_text(const Uuid& uuid);                  // 01890a5d-ac96-774b-bcce-b302099a8057
std::optional<Uuid> parse_uuid(std::string_view text);  // the same form, letters large or small

template <class Tag>
struct UuidOf {
  Uuid value;
  friend auto operator<=>(const UuidOf&, const UuidOf&) = default;
};
using InstanceId = UuidOf<struct InstanceTag>;  // one running process; never used again by another
using MessageId = UuidOf<struct MessageTag>;    // chosen by whoever sends it; of an event, its id too
using StreamId = UuidOf<struct StreamTag>;

}  // namespace baton::stream
