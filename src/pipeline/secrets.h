// Values that must not be seen. Whatever is said by modules passes through mask().
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace baton::pipeline {

class Secrets {
 public:
  void add(const std::string& name, std::string value) { values_[name] = std::move(value); }
  const std::string* find(const std::string& name) const;
  // The text with each secret as ***; lines of a secret of several lines too. One of fewer than four
  // characters is not masked: it would be found everywhere. Those that overlap are masked together.
  std::string mask(std::string_view text) const;
  // Of each character, whether it is part of one.
  std::vector<bool> hidden(std::string_view text) const;
  // Those that are in the text, as they are masked.
  std::vector<std::string> found_in(std::string_view text) const;
  // Of what is masked, in bytes. One that a text ends within has begun in the last of them.
  std::size_t longest() const;
  bool empty() const { return values_.empty(); }
  std::vector<std::string> names() const;

 private:
  std::vector<std::string_view> masked() const;

  std::map<std::string, std::string> values_;
};

// The text with *** instead of what is hidden, which says so of each of its characters.
std::string shown(std::string_view text, const std::vector<bool>& hidden);

}  // namespace baton::pipeline
