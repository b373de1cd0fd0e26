#include "group/memory.h"

namespace baton::group {

void Memory::add(Kept kept) {
  if (kept.outcome) kept_.clear();
  if (kept_.size() == kRememberedMax) kept_.erase(kept_.begin() + 1);
  kept_.push_back(std::move(kept));
}

}  // namespace baton::group
