// Answers of the statements of work coordination, read from their rows.
#pragma once

#include <cstddef>
#include <vector>

#include "postgres/connection.h"
#include "stream/work_coordinator.h"

namespace baton::postgres {

stream::Standing standing_of(const Rows& rows);
std::vector<stream::Verdict> verdicts_of(const Rows& rows, std::size_t count);
std::vector<stream::Work> work_of(const Rows& rows);

}  // namespace baton::postgres
