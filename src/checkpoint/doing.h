// What a rank says it is doing: what its program said last, and behind that how far a save has got while it
// writes.
#pragma once

#include <string>

namespace baton::checkpoint {

struct Doing {
  std::string said;
  std::string saving;

  std::string text() const { return said.empty() || saving.empty() ? said + saving : said + ", " + saving; }
};

}  // namespace baton::checkpoint
