// Messages without a stream beside those that have one.
#include <algorithm>

#include "tests/stream/people.h"

namespace baton::stream {
namespace {

// How many claims it takes until a message is handed out that comes behind a backlog which never ends.
int claims_until_first(Backend& backend, Person& a, const NewMessage& first, NewMessage (*other)(unsigned),
                       const ClaimLimits& limits) {
  unsigned next = 2;
  const auto store_others = [&](std::size_t count) {
    std::vector<NewMessage> all;
    while (all.size() < count) all.push_back(other(next++));
    a.store(Lane::inbox, all);
    backend.let_time_pass(seconds(1));
  };
  store_others(6);
  a.store(Lane::inbox, {first});
  backend.let_time_pass(seconds(1));
  for (int claims = 1; claims <= 20; ++claims) {
    const std::vector<Work> work = a.claim({.limits = limits});
    if (std::ranges::count(ids(work), first.id) > 0) return claims;
    a.done(work);
    store_others(work.size());
  }
  return -1;
}

NewMessage in_its_own_stream(unsigned number) { return in_stream(number, number); }

const ClaimLimits kTwo{.messages = 2};
const ClaimLimits kOneAtATime{.bytes = 1};

// S12: whoever has waited longest comes first.
TEST_P(Stream, KeepsNoMessageWithoutOneWaitingForEver) {
  Person a = person(1), b = person(2, "payments");
  EXPECT_EQ(claims_until_first(*backend_, a, loose(1), in_its_own_stream, kTwo), 4);
  EXPECT_EQ(claims_until_first(*backend_, b, loose(1), in_its_own_stream, kOneAtATime), 7);
}

// S12
TEST_P(Stream, IsNotKeptWaitingForEverByMessagesWithoutOne) {
  Person a = person(1), b = person(2, "payments");
  EXPECT_EQ(claims_until_first(*backend_, a, in_stream(1, 1), loose, kTwo), 4);
  EXPECT_EQ(claims_until_first(*backend_, b, in_stream(1, 1), loose, kOneAtATime), 7);
}

// S12, S19: who comes second has what is left, and the two together no more than the limits.
TEST_P(Stream, SharesAClaimWithMessagesWithoutOne) {
  Person a = person(1);
  a.store(Lane::inbox, {loose(1), loose(2)});
  let_time_pass(seconds(1));
  a.store(Lane::inbox, {in_stream(3, 1), in_stream(4, 1), in_stream(5, 2)});
  let_time_pass(seconds(1));
  a.store(Lane::inbox, {loose(6)});
  let_time_pass(seconds(1));
  const auto claimed = [&] {
    std::vector<MessageId> all = ids(a.claim({.limits = {.messages = 4}}));
    std::ranges::sort(all);
    return all;
  };
  EXPECT_EQ(claimed(), messages({1, 2, 3, 6}));
  EXPECT_EQ(claimed(), messages({5}));
}

}  // namespace
}  // namespace baton::stream
