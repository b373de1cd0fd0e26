#include "core/names.h"

#include <gtest/gtest.h>

#include "core/limits.h"
#include "core/name_map.h"

namespace baton::core {
namespace {

Capabilities of(std::vector<std::string> names) { return *Capabilities::of(names); }

// X3
TEST(Names, AreGraphicAsciiOfBoundedLength) {
  EXPECT_TRUE(is_name("a"));
  EXPECT_TRUE(is_name("queue/of-things_1.2:3~!"));
  EXPECT_TRUE(is_name(std::string(kNameBytesMax, 'x')));
  EXPECT_FALSE(is_name(std::string(kNameBytesMax + 1, 'x')));
  EXPECT_FALSE(is_name(""));
  for (int c = 0; c < 256; ++c) {
    const std::string name(1, static_cast<char>(c));
    EXPECT_EQ(is_name(name), c > ' ' && c < 0x7f) << c;
    EXPECT_EQ(is_name("a" + name + "b"), c > ' ' && c < 0x7f) << c;
  }
}

TEST(ScopedNames, AreDifferentForDifferentPairs) {
  EXPECT_NE(std::string_view(ScopedName("a", "bc")), std::string_view(ScopedName("ab", "c")));
  const std::string longest(kNameBytesMax, 'x');
  EXPECT_EQ(std::string_view(ScopedName(longest, longest)).size(), 2 * kNameBytesMax + 1);
}

TEST(Capabilities, AreASetWhateverOrderTheyComeIn) {
  EXPECT_EQ(of({"gpu", "disk"}), of({"disk", "gpu", "gpu"}));
  EXPECT_EQ(of({"gpu", "disk"}).joined(), "disk gpu");
  EXPECT_EQ(of({}).joined(), "");
  EXPECT_EQ(Capabilities::from_canonical("disk gpu"), of({"gpu", "disk"}));
}

// X3
TEST(Capabilities, AreBoundedInNumberAndForm) {
  std::vector<std::string> many;
  for (std::size_t i = 0; i < kCapabilitiesMax; ++i) many.push_back("c" + std::to_string(i));
  EXPECT_TRUE(Capabilities::of(many).has_value());
  many.push_back("one-more");
  EXPECT_EQ(Capabilities::of(many).error().code, Errc::too_large);
  EXPECT_EQ(Capabilities::of(std::vector<std::string>{"a b"}).error().code, Errc::invalid_request);
  EXPECT_EQ(Capabilities::of(std::vector<std::string>{""}).error().code, Errc::invalid_request);
}

// E5: all subsets of five names, some of which begin alike, against all others.
TEST(Covering, IsBeingASuperset) {
  const std::vector<std::string> names = {"a", "ab", "abc", "b", "!"};
  const auto subset = [&](unsigned bits) {
    std::vector<std::string> some;
    for (unsigned i = 0; i < names.size(); ++i) {
      if (bits & (1u << i)) some.push_back(names[i]);
    }
    return of(some);
  };
  for (unsigned offered = 0; offered < 32; ++offered) {
    for (unsigned needed = 0; needed < 32; ++needed) {
      EXPECT_EQ(covers(subset(offered).joined(), subset(needed).joined()), (needed & ~offered) == 0)
          << offered << ' ' << needed;
    }
  }
}

TEST(NameMap, FindsNamesBeforeAndAfterItIsSpreadOut) {
  NameMap map;
  for (Slot slot = 1; slot <= 3000; ++slot) {
    map.insert("name" + std::to_string(slot), slot);
    if (slot == 1023 || slot == 1024 || slot == 1025 || slot == 3000) {
      for (Slot known = 1; known <= slot; ++known) ASSERT_EQ(map.find("name" + std::to_string(known)), known);
    }
  }
  for (Slot slot = 1; slot <= 3000; slot += 2) map.erase("name" + std::to_string(slot));
  EXPECT_EQ(map.size(), 1500u);
  for (Slot slot = 1; slot <= 3000; ++slot)
    ASSERT_EQ(map.find("name" + std::to_string(slot)), slot % 2 == 0 ? slot : 0);
}

}  // namespace
}  // namespace baton::core
