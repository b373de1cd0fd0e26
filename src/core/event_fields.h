// How the fields of events are written and read.
//
// A field is written and read by overloads of one name, so that each event's layout is one list of fields.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"
#include "core/event.h"
#include "core/limits.h"

namespace baton::core {

// The last value that each enumeration has in the log. What is not listed cannot be a field.
constexpr auto last_of(Ended) { return Ended::dead; }
constexpr auto last_of(BlobPart) { return BlobPart::note; }
constexpr auto last_of(DeadReason) { return DeadReason::attempts_exhausted; }
constexpr auto last_of(Reported) { return Reported::dead; }
constexpr auto last_of(MessagePart) { return MessagePart::error; }
constexpr auto last_of(stream::Lane) { return stream::Lane::inbox; }
constexpr auto last_of(stream::FailurePolicy) { return stream::FailurePolicy::park_stream; }
constexpr auto last_of(stream::ReceptorStatus) { return stream::ReceptorStatus::failed; }
constexpr auto last_of(stream::PerspectiveStatus) { return stream::PerspectiveStatus::catching_up; }

// What is written is what can be read again: an entry that nobody can read would be the end of the log.
template <class Enum>
constexpr bool is_recordable(Enum value) {
  const auto number = static_cast<std::int64_t>(value);
  const bool is_no_lane = std::same_as<Enum, stream::Lane> && number == 0;
  return number >= 0 && number <= static_cast<std::int64_t>(last_of(value)) && !is_no_lane;
}

template <class E, class Of>
concept Is = std::same_as<std::remove_const_t<E>, Of>;
template <class E, class One, class Other>
concept Either = Is<E, One> || Is<E, Other>;

class FieldWriter {
 public:
  explicit FieldWriter(ByteWriter out) : out_(out) {}
  void operator()(std::uint8_t value) { out_.fixed(value); }
  void operator()(std::uint32_t value) { out_.varint(value); }
  void operator()(std::uint64_t value) { out_.varint(value); }
  void operator()(Instant value) { out_.zigzag(value.ms); }
  void operator()(Duration value) { out_.zigzag(value.ms); }
  void operator()(std::string_view value) { out_.text(value); }
  void operator()(const std::string& value) { out_.text(value); }
  void operator()(const TaskId& value) { out_.varint(value.epoch), out_.varint(value.lsn); }
  void operator()(const SecretKey& value) { out_.fixed(value.low), out_.fixed(value.high); }
  void operator()(const RetryPolicy& value) {
    const bool usual = value == RetryPolicy{};
    out_.fixed(std::uint8_t{!usual});
    if (usual) return;
    (*this)(value.max_failures), (*this)(value.base), (*this)(value.factor_percent);
    (*this)(value.max), (*this)(value.jitter_percent);
  }
  void operator()(const BlobRef& value) {
    out_.varint(value.length);
    if (value.length == 0) return;
    out_.varint(value.lsn), out_.varint(value.offset), out_.fixed(value.hash);
  }
  void operator()(const BlobView& value) {  // always last
    out_.fixed(value.hash);
    out_.raw(value.bytes);
  }
  void operator()(bool value) { out_.fixed(std::uint8_t{value}); }
  void operator()(std::int32_t value) { out_.zigzag(value); }
  template <class Tag>
  void operator()(const stream::UuidOf<Tag>& value) {
    out_.raw(value.value.bytes);
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void operator()(Enum value) {
    BATON_CHECK(is_recordable(value));
    out_.fixed(static_cast<std::uint8_t>(value));
  }
  template <class Item>
  void operator()(const std::vector<Item>& items) {
    out_.varint(items.size());
    for (const Item& item : items) (*this)(item);
  }
  template <class Item>
  void operator()(const std::optional<Item>& item) {
    (*this)(item.has_value());
    if (item) (*this)(*item);
  }
  // A blob among others: what is to be known of it stands here, its bytes at the end, in the same order.
  void announce(const BlobView& value) {
    out_.varint(value.bytes.size());
    if (!value.bytes.empty()) out_.fixed(value.hash);
  }
  void bytes(const BlobView& value) { out_.raw(value.bytes); }
  // The last field of an event that did not have it at first: nothing is written for what was so before.
  void later(bool value) {
    if (value) (*this)(value);
  }
  // Whatever is made of fields itself.
  template <class Item>
    requires std::is_class_v<Item>
  void operator()(const Item& item) {
    fields(*this, item);
  }

 private:
  ByteWriter out_;
};

class FieldReader {
 public:
  explicit FieldReader(ByteReader& in) : in_(in) {}
  void operator()(std::uint8_t& value) { value = in_.fixed<std::uint8_t>(); }
  void operator()(std::uint32_t& value) { value = narrow(in_.varint()); }
  void operator()(std::uint64_t& value) { value = in_.varint(); }
  void operator()(Instant& value) { value.ms = in_.zigzag(); }
  void operator()(Duration& value) { value.ms = in_.zigzag(); }
  void operator()(std::string_view& value) { value = in_.text(); }
  void operator()(std::string& value) { value = in_.text(); }
  void operator()(TaskId& value) { (*this)(value.epoch), (*this)(value.lsn); }
  void operator()(SecretKey& value) {
    value.low = in_.fixed<std::uint64_t>();
    value.high = in_.fixed<std::uint64_t>();
  }
  void operator()(RetryPolicy& value) {
    if (!flag()) return;
    (*this)(value.max_failures), (*this)(value.base), (*this)(value.factor_percent);
    (*this)(value.max), (*this)(value.jitter_percent);
    if (value == RetryPolicy{}) in_.fail();  // one encoding per value
  }
  void operator()(BlobRef& value) {
    (*this)(value.length);
    if (value.length == 0) return;
    (*this)(value.lsn), (*this)(value.offset);
    value.hash = in_.fixed<std::uint64_t>();
  }
  void operator()(BlobView& value) {
    value.hash = in_.fixed<std::uint64_t>();
    value.bytes = in_.rest();
  }
  void operator()(bool& value) { value = flag(); }
  void operator()(std::int32_t& value) {
    const std::int64_t read = in_.zigzag();
    value = static_cast<std::int32_t>(read);
    if (value != read) in_.fail();
  }
  template <class Tag>
  void operator()(stream::UuidOf<Tag>& value) {
    const ByteView read = in_.raw(value.value.bytes.size());
    if (in_.ok()) std::ranges::copy(read, value.value.bytes.begin());
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void operator()(Enum& value) {
    value = static_cast<Enum>(in_.fixed<std::uint8_t>());
    if (!is_recordable(value)) in_.fail();
  }
  template <class Item>
  void operator()(std::vector<Item>& items) {
    std::size_t count_max = in_.remaining();  // each takes a byte or more
    if constexpr (std::same_as<Item, LeaseExtended>) count_max = kExtendItemsMax;
    if constexpr (std::same_as<Item, Lsn>) count_max = kPurgeItemsMax;
    const std::uint64_t count = in_.varint();
    if (count > count_max) in_.fail();
    for (std::uint64_t i = 0; i < count && in_.ok(); ++i) (*this)(items.emplace_back());
  }
  template <class Item>
  void operator()(std::optional<Item>& item) {
    if (flag()) (*this)(item.emplace());
  }
  void announce(BlobView& value) {
    const std::uint32_t length = narrow(in_.varint());
    if (length != 0) value.hash = in_.fixed<std::uint64_t>();
    announced_.push_back(length);
  }
  void bytes(BlobView& value) { value.bytes = in_.raw(announced_.at(next_announced_++)); }
  void later(bool& value) {
    if (in_.remaining() == 0) return;
    value = flag();
    if (!value) in_.fail();  // one encoding per value
  }
  template <class Item>
    requires std::is_class_v<Item>
  void operator()(Item& item) {
    fields(*this, item);
  }

 private:
  bool flag() {
    const auto value = in_.fixed<std::uint8_t>();
    if (value > 1) in_.fail();
    return value == 1;
  }
  std::uint32_t narrow(std::uint64_t value) {
    if (value > UINT32_MAX) in_.fail();
    return static_cast<std::uint32_t>(value);
  }

  ByteReader& in_;
  std::vector<std::uint32_t> announced_;  // lengths of blobs whose bytes come at the end
  std::size_t next_announced_ = 0;
};

}  // namespace baton::core
