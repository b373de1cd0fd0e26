#include "engine/blob_cache.h"

#include <utility>

#include "base/check.h"

namespace baton::engine {

std::size_t BlobCache::cost(const SharedBytes& blob) {
  constexpr std::size_t kOverhead = 128;  // of the allocations
  return blob ? blob->size() + kOverhead : sizeof blob;
}

void BlobCache::add(SharedBytes blob) {
  bytes_ += cost(blob);
  row_.push_back(std::move(blob));
  for (; bytes_ > bytes_max_; row_.pop_front(), ++first_) bytes_ -= cost(row_.front());
}

void BlobCache::pass(std::uint64_t number) {
  if (row_.empty()) first_ = number + 1;
  while (next() <= number) add(nullptr);
}

void BlobCache::keep(std::uint64_t number, Bytes bytes) {
  BATON_CHECK(number > 0 && number >= next());
  pass(number - 1);
  auto blob = std::make_shared<const Bytes>(std::move(bytes));
  add(cost(blob) <= bytes_max_ ? std::move(blob) : nullptr);  // nor is all the rest forgotten for it
}

SharedBytes BlobCache::find(std::uint64_t number) const {
  return number >= first_ && number < next() ? row_[number - first_] : nullptr;
}

}  // namespace baton::engine
