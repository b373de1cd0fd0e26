// Storage that grows without moving what is already there, so that growing never stalls.
//
// Paged<T> is an array in pages of fixed size. Slab<T> hands out slots of one and takes them back;
// slot 0 is never handed out and means "none". T needs a `std::uint32_t next`, which links free slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/check.h"

namespace baton {

template <class T, std::size_t kPage = 256>
class Paged {
 public:
  Paged() = default;
  Paged(const Paged&) = delete;
  Paged& operator=(const Paged&) = delete;
  Paged(Paged&& from) noexcept { swap(from); }
  Paged& operator=(Paged&& from) noexcept {
    Paged(std::move(from)).swap(*this);
    return *this;
  }
  ~Paged() {
    for (std::uint32_t index = 0; index < made_; ++index) std::destroy_at(&(*this)[index]);
    for (T* block : blocks_) ::operator delete(block);
  }
  void swap(Paged& other) noexcept {
    pages_.swap(other.pages_);
    blocks_.swap(other.blocks_);
    std::swap(size_, other.size_);
    std::swap(made_, other.made_);
  }

  T& operator[](std::uint32_t index) { return pages_[index / kPage][index % kPage]; }
  const T& operator[](std::uint32_t index) const { return pages_[index / kPage][index % kPage]; }

  std::uint32_t size() const { return size_; }
  void push_back(T value) {
    if (size_ == pages_.size() * kPage) grow();
    T& item = (*this)[size_++];
    if (size_ > made_) {
      ++made_;
      std::construct_at(&item, std::move(value));
    } else {
      item = std::move(value);
    }
  }
  void pop_back() { --size_; }  // the memory is kept for the next time

 private:
  static_assert(alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__);
  static constexpr std::size_t kPagesPerBlock = 64;

  // Small at first, for most states are; then many pages at a time. Nothing is made in them before it is
  // needed: touching a whole block at once would be the stall this is to avoid. Huge pages would be that
  // stall: filling ten million tasks takes 1.5 times as long with them, and their later touches at random
  // gain 10 %.
  void grow() {
    const std::size_t pages = pages_.size() < kPagesPerBlock ? 1 : kPagesPerBlock;
    T* block = static_cast<T*>(::operator new(pages * kPage * sizeof(T)));
    blocks_.push_back(block);
    for (std::size_t page = 0; page < pages; ++page) pages_.push_back(block + page * kPage);
  }

  std::vector<T*> pages_;
  std::vector<T*> blocks_;  // what was taken
  std::uint32_t size_ = 0;
  std::uint32_t made_ = 0;  // items that were constructed, and are to be destroyed
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
