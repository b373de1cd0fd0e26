#include "pipeline/codec.h"

#include <gtest/gtest.h>

#include <cmath>

#include "pipeline/status.h"

namespace shop {

enum class Colour : std::uint8_t { red, green };
struct Part {
  std::string name;
  std::uint64_t size = 0;
  friend bool operator==(const Part&, const Part&) = default;
};
BATON_FIELDS(Part, name, size)

struct Order {
  bool paid = false;
  double weight = 0;
  Colour colour = Colour::red;
  std::optional<std::string> note;
  std::vector<Part> parts;
  std::map<std::string, int> counts;
  std::pair<int, std::string> pair;
  std::tuple<bool, std::int64_t> tuple;
  std::variant<int, std::string> choice;
  std::array<int, 2> both{};
  friend bool operator==(const Order&, const Order&) = default;
};
BATON_FIELDS(Order, paid, weight, colour, note, parts, counts, pair, tuple, choice, both)

}  // namespace shop

namespace baton::pipeline {
namespace {

using shop::Order;
using shop::Part;

struct Opaque {
  void* handle;
};
static_assert(Encodable<Order> && Encodable<std::vector<std::optional<Part>>>);
static_assert(!Encodable<Opaque> && !Encodable<std::vector<Opaque>>);

template <class T>
Result<T> round_trip(const T& object) {
  auto value = from_json(to_json(Codec<T>::encode(object)));
  if (!value) return std::unexpected(value.error());
  return Codec<T>::decode(*value);
}

TEST(AResult, ComesBackAsItWasSent) {  // P12
  const Order order{.paid = true,
                    .weight = 1.5,
                    .colour = shop::Colour::green,
                    .note = "fragile \"\n\x01 ü",
                    .parts = {{"wheel", 4}, {"axle", UINT64_MAX}},
                    .counts = {{"a", -1}, {"b", 2}},
                    .pair = {7, "seven"},
                    .tuple = {true, INT64_MIN},
                    .choice = "text",
                    .both = {1, 2}};
  EXPECT_EQ(round_trip(order), order);
  EXPECT_EQ(round_trip(Order{}), Order{});
  EXPECT_EQ(round_trip(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(*round_trip(std::nan(""))));
}

TEST(AResult, KnowsFieldsByName) {  // P12
  const auto part = Codec<Part>::decode(*from_json(R"({"new field": [1], "size": 3, "name": "nut"})"));
  EXPECT_EQ(part, (Part{"nut", 3}));
}

TEST(AResult, SaysWhatIsWrongAndWhere) {  // P12
  const auto message = [](const char* json) {
    return Codec<Order>::decode(*from_json(json)).error().message;
  };
  EXPECT_EQ(message("[]"), "expected fields, found a list");
  EXPECT_EQ(message(R"({"weight": 1})"), "field 'paid' is missing");
  const std::string fine =
      R"("paid": true, "weight": 1, "colour": 0, "counts": {}, "pair": [1, "x"], "tuple": [true, 1], "choice": [0, 1], "both": [1, 2])";
  EXPECT_EQ(
      message(("{" + fine + R"(, "parts": [{"name": "a", "size": 1}, {"name": 2, "size": 1}]})").c_str()),
      "parts: [1]: name: expected text, found a number");
  EXPECT_EQ(message(("{" + fine + R"(, "parts": [{"name": "a", "size": -1}]})").c_str()),
            "parts: [0]: size: -1 is out of range");
  EXPECT_EQ(Codec<std::uint8_t>::decode(*from_json("256")).error().message, "256 is out of range");
  EXPECT_EQ(Codec<ModuleStatus>::decode(*from_json("99")).error().message, "99 is out of range");
  EXPECT_EQ((Codec<std::variant<int, bool>>::decode(*from_json("[2, true]"))).error().message,
            "there is no alternative 2");
}

TEST(AResult, IsNotChangedOnItsWay) {  // P12
  const Value bytes{std::string("a\xFF")};
  EXPECT_THROW((void)to_exact_json(bytes), std::invalid_argument);
  EXPECT_EQ(*from_json(to_json(bytes))->text(), "a\uFFFD") << "what is only told is made readable";
}

TEST(AResult, HasASchemaThatChangesWithItsFields) {
  EXPECT_EQ(Codec<Part>::schema(), "{name:text,size:u64,}");
  EXPECT_EQ(Codec<std::vector<std::optional<int>>>::schema(), "[i32?]");
}

TEST(AValue, IsRefusedWhenItIsNoJsonOrTooDeep) {
  EXPECT_EQ(from_json("{").error().code, Errc::invalid_request);
  EXPECT_TRUE(from_json(std::string(kValueDepthMax, '[') + std::string(kValueDepthMax, ']')));
  EXPECT_FALSE(from_json(std::string(kValueDepthMax + 1, '[') + std::string(kValueDepthMax + 1, ']')));
}

}  // namespace
}  // namespace baton::pipeline
