// How a verb writes its reply, whichever protocol carries it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace baton::server {

// When it is worth another try, where that is the answer to an error.
inline Duration retry_after(const Error& error) {
  if (error.code != Errc::exhausted) return {};
  return error.retry_after > Duration{} ? error.retry_after : seconds(1);
}

class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;

  virtual void map(std::size_t members) = 0;  // as many times a name and a value follow
  virtual void list(std::size_t items) = 0;   // as many values follow
  virtual void name(std::string_view text) = 0;

  virtual void text(std::string_view value) = 0;
  virtual void bytes(ByteView value) = 0;
  virtual void number(std::int64_t value) = 0;
  virtual void boolean(bool value) = 0;
  virtual void null() = 0;
  virtual void error(const Error& error) = 0;

  void member(std::string_view key, std::string_view value) { name(key), text(value); }
  void member(std::string_view key, std::uint64_t value) {
    name(key), number(static_cast<std::int64_t>(value));
  }
};

}  // namespace baton::server
