#include "core/ids.h"

#include <gtest/gtest.h>

namespace baton::core {
namespace {

TEST(Ids, ReadBackFromTheirText) {
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xabcdef}, UINT64_MAX}) {
    for (const Epoch epoch : {Epoch{0}, Epoch{0x6743b0aa}, Epoch{UINT32_MAX}}) {
      const TaskId task{epoch, number};
      EXPECT_EQ(*parse_task_id(to_text(task)), task);
      const LeaseId lease{epoch, number, ~number};
      EXPECT_EQ(*parse_lease_id(to_text(lease)), lease);
    }
  }
  EXPECT_EQ(to_text(TaskId{0x6743b0aa, 0x1f}), "6743b0aa-1f");
  EXPECT_EQ(to_text(LeaseId{0x6743b0aa, 0x20, 0x9d0c51f3a7e2b884}), "6743b0aa-20-9d0c51f3a7e2b884");
}

// X3: one way to write each, so that texts can be compared.
TEST(Ids, AreReadInOneFormOnly) {
  for (const char* text : {"", "-", "1", "1-", "-1", "01-1", "1-01", "A-1", "1-F", "0x1-1", "+1-1", "1--1",
                           "1-1-", "1-1-1", " 1-1", "1-1 ", "100000000-1", "1-10000000000000000", "g-1"}) {
    EXPECT_EQ(parse_task_id(text).error().code, Errc::invalid_request) << text;
  }
  for (const char* text :
       {"", "1-1", "1-1-", "1-1-1-1", "1-1-G", "1-1-01", "1-1-10000000000000000", "1-1-1 "}) {
    EXPECT_EQ(parse_lease_id(text).error().code, Errc::invalid_request) << text;
  }
}

// D30
TEST(LeaseIds, AreOrderedByEpochFirst) {
  EXPECT_LT((LeaseId{1, 900, 5}), (LeaseId{2, 1, 4}));
  EXPECT_LT((LeaseId{2, 1, 9}), (LeaseId{2, 2, 0}));
}

}  // namespace
}  // namespace baton::core
