// Ranks as people read them: "rank 3", "ranks 0-2, 4 and 7".
#pragma once

#include <string>
#include <vector>

#include "checkpoint/collective.h"

namespace baton::checkpoint {

std::string rank_list(const std::vector<Rank>& sorted);

}  // namespace baton::checkpoint
