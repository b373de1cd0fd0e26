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
  // characters is not masked: it would be found everywhere.
  std::string mask(std::string_view text) const;
  // Of what is masked, in bytes. One that a text ends within has begun in the last of them.
  std::size_t longest() const;
  bool empty() const { return values_.empty(); }
  std::vector<std::string> names() const;

 private:
  std::vector<std::string_view> masked() const;  // longer ones first: one may be part of another

  std::map<std::string, std::string> values_;
};

}  // namespace baton::pipeline
