// How many there are under each name. A place is given back by whoever had it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace baton::server {

class Crowd {
  using Counts = std::map<std::string, std::size_t>;

 public:
  class Place {
   public:
    Place() = default;
    Place(Counts& counts, Counts::iterator at) : counts_(&counts), at_(at) { ++at_->second; }
    Place(Place&& from) noexcept : counts_(std::exchange(from.counts_, nullptr)), at_(from.at_) {}
    Place& operator=(Place&& from) noexcept {
      std::swap(counts_, from.counts_);
      std::swap(at_, from.at_);
      return *this;
    }
    ~Place() {
      if (counts_ != nullptr && --at_->second == 0) counts_->erase(at_);
    }

   private:
    Counts* counts_ = nullptr;
    Counts::iterator at_;
  };

  // Nothing if there are `max` already. The crowd outlives its places.
  std::optional<Place> enter(const std::string& name, std::size_t max) {
    const auto known = counts_.find(name);
    if (known != counts_.end() && known->second >= max) return {};
    if (known == counts_.end() && max == 0) return {};
    return Place(counts_, counts_.try_emplace(name, 0).first);
  }

 private:
  Counts counts_;
};

}  // namespace baton::server
