// What ranks do together, as far as whoever brings them together has to know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace baton::group {

using Rank = std::uint32_t;
// Grows whenever the ranks of a group are put together anew.
using Generation = std::uint64_t;

enum class OperationKind : std::uint8_t {
  barrier,     // nobody gets anything
  vote,        // nor here; a rank may bring its error
  broadcast,   // everybody gets what the root contributed
  gather,      // the root gets everything, in the order of ranks
  all_gather,  // everybody does
  all_reduce,  // so too, to fold it
};
std::string_view word(OperationKind kind);
std::optional<OperationKind> kind_of(std::string_view word);
bool gathers(OperationKind kind);  // what all ranks bring, for one of them or for all

struct Operation {
  OperationKind kind = OperationKind::barrier;
  std::string name;
  Rank root = 0;  // of broadcast and gather
  friend bool operator==(const Operation&, const Operation&) = default;
};
std::string title(const Operation& operation);  // gather "hosts" with root 2

// Of the text of an error that a rank brings, since many are kept and all ranks hear it; the rest is cut off.
inline constexpr std::size_t kErrorBytesMax = 8 << 10;

// What a rank gets of an operation. Shared, for all of them may get the same.
using Share = std::shared_ptr<const std::vector<Bytes>>;

// "rank 3", "ranks 0-2, 4 and 7"
std::string rank_list(const std::vector<Rank>& sorted);

}  // namespace baton::group
