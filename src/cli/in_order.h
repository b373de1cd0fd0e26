// Hands on, in the order of their numbers, what comes in any order.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <utility>

namespace baton::cli {

template <class T>
class InOrder {
 public:
  explicit InOrder(std::function<void(std::size_t number, T)> hand_on) : hand_on_(std::move(hand_on)) {}

  void put(std::size_t number, T value) {
    early_.emplace(number, std::move(value));
    for (auto next = early_.begin(); next != early_.end() && next->first == next_;
         next = early_.erase(next)) {
      hand_on_(next_++, std::move(next->second));
    }
  }

 private:
  const std::function<void(std::size_t number, T)> hand_on_;
  std::map<std::size_t, T> early_;
  std::size_t next_ = 0;
};

}  // namespace baton::cli
