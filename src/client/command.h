// The words of a command, encoded as they are said.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "wire/resp.h"

namespace baton::client {

class Command {
 public:
  explicit Command(std::string_view verb) { add(verb); }
  explicit Command(const std::vector<std::string>& words) {
    for (const std::string& word : words) add(word);
  }

  Command& add(std::string_view word) {
    wire::RespWriter(words_).bulk(word);
    ++count_;
    return *this;
  }
  Command& add(std::integral auto number) { return add(std::string_view(std::to_string(number))); }
  Command& add(Duration duration) { return add(duration.ms); }

  Command& option(std::string_view name, const auto& value) { return add(name).add(value); }
  Command& option_if(bool given, std::string_view name, const auto& value) {
    return given ? option(name, value) : *this;
  }
  Command& each(std::string_view name, const std::vector<std::string>& values) {
    for (const std::string& value : values) option(name, std::string_view(value));
    return *this;
  }

  const std::string& words() const { return words_; }
  std::size_t count() const { return count_; }
  std::string whole() const {
    std::string text;
    wire::RespWriter(text).array(count_);
    return text + words_;
  }

 private:
  std::string words_;
  std::size_t count_ = 0;
};

}  // namespace baton::client
