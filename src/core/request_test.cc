#include "core/request.h"

#include <gtest/gtest.h>

namespace baton::core {
namespace {

bool is_consistent(const Blob& blob) {
  return blob.hash() == (blob.bytes().empty() ? 0 : content_hash(blob.bytes()));
}

TEST(Blob, AlwaysHasTheHashOfItsBytes) {
  Blob blob("some bytes");
  const Blob copy = blob;
  Blob moved = std::move(blob);
  EXPECT_TRUE(is_consistent(blob) && is_consistent(copy) && is_consistent(moved));
  EXPECT_EQ(copy.hash(), moved.hash());
  EXPECT_TRUE(blob.bytes().empty());

  Blob assigned("others");
  assigned = std::move(moved);
  EXPECT_TRUE(is_consistent(moved) && is_consistent(assigned));
  EXPECT_EQ(assigned.hash(), copy.hash());
  assigned = copy;
  EXPECT_EQ(text_of(assigned.bytes()), "some bytes");
  EXPECT_TRUE(is_consistent(assigned));
  EXPECT_TRUE(is_consistent(Blob()) && is_consistent(Blob("")));
}

}  // namespace
}  // namespace baton::core
