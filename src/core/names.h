// Names that users choose, and sets of capabilities.
//
// A name is 1 to 128 graphic ASCII characters, so it can stand in a log line, a URL or a shell command
// without surprises, and a space can join two names without ambiguity.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton::core {

bool is_name(std::string_view text);

// A name together with its namespace, as one key of a table. Valid while this object lives.
class ScopedName {
 public:
  ScopedName(std::string_view ns, std::string_view name);
  operator std::string_view() const { return {text_, length_}; }

 private:
  std::size_t length_;
  char text_[2 * 128 + 1];
};

// A set of capability names in canonical form: sorted, without repetition, joined by spaces.
class Capabilities {
 public:
  Capabilities() = default;
  static Result<Capabilities> of(std::span<const std::string> names);
  // `text` is canonical already: it comes from the log, or from joined().
  static Capabilities from_canonical(std::string_view text);

  const std::string& joined() const { return joined_; }
  friend bool operator==(const Capabilities&, const Capabilities&) = default;

 private:
  std::string joined_;
};

// Whether every capability in `needed` is among those in `offered`; both canonical.
bool covers(std::string_view offered, std::string_view needed);

}  // namespace baton::core
