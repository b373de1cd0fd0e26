// Storage that grows without moving what is already there, so that growing never stalls.
//
// Paged<T> is an array in pages of fixed size. Slab<T> hands out slots of one and takes them back;
// slot 0 is never handed out and means "none". T needs a `std::uint32_t next`, which links free slots.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"

namespace baton {

template <class T>
class Paged {
 public:
  T& operator[](std::uint32_t index) { return pages_[index / kPage][index % kPage]; }
  const T& operator[](std::uint32_t index) const { return pages_[index / kPage][index % kPage]; }

  std::uint32_t size() const { return size_; }
  void push_back(T value) {
    if (size_ == pages_.size() * kPage) pages_.push_back(std::make_unique<T[]>(kPage));
    ++size_;
    (*this)[size_ - 1] = std::move(value);
  }
  void pop_back() {
    --size_;
    // One spare page is kept, so that a size swinging about a page's edge does not allocate each time.
    if (pages_.size() * kPage >= size_ + 2 * kPage) pages_.pop_back();
  }

 private:
  static constexpr std::uint32_t kPage = 256;
  std::vector<std::unique_ptr<T[]>> pages_;
  std::uint32_t size_ = 0;
};

template <class T>
class Slab {
 public:
  Slab() { slots_.push_back(T{}); }

  std::uint32_t take() {
    ++used_;
    if (free_ == 0) {
      slots_.push_back(T{});
      return slots_.size() - 1;
    }
    const std::uint32_t slot = free_;
    free_ = slots_[slot].next;
    slots_[slot] = T{};
    return slot;
  }
  void give_back(std::uint32_t slot) {
    BATON_CHECK(slot != 0 && used_ > 0);
    --used_;
    slots_[slot] = T{};
    slots_[slot].next = free_;
    free_ = slot;
  }

  T& operator[](std::uint32_t slot) { return slots_[slot]; }
  const T& operator[](std::uint32_t slot) const { return slots_[slot]; }
  std::uint32_t used() const { return used_; }
  std::uint32_t end() const { return slots_.size(); }  // every slot in use is below this one

 private:
  Paged<T> slots_;
  std::uint32_t free_ = 0;
  std::uint32_t used_ = 0;
};

}  // namespace baton
