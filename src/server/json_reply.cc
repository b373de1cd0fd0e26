#include "server/json_reply.h"

#include "base/utf8.h"
#include "wire/text.h"

namespace baton::server {

void JsonReply::begin_value() {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (level.begun) out_ += ',';
  level.begun = true;
  if (!level.is_map) return;
  wire::put_json_string(out_, name_);
  out_ += ':';
}

void JsonReply::end_value() {
  while (!levels_.empty() && --levels_.back().left == 0) {
    out_ += levels_.back().is_map ? '}' : ']';
    levels_.pop_back();
  }
}

void JsonReply::open(char bracket, std::size_t members) {
  begin_value();
  out_ += bracket;
  levels_.push_back({.left = members + 1, .is_map = bracket == '{'});
  end_value();  // what is empty ends here
}

void JsonReply::text(std::string_view value) {
  begin_value();
  wire::put_json_string(out_, value);
  end_value();
}

void JsonReply::bytes(ByteView value) {
  const std::string_view bytes = text_of(value);
  if (is_utf8(bytes)) return text(bytes);
  name_ += "_base64";
  begin_value();
  out_ += '"';
  wire::put_base64(out_, bytes);
  out_ += '"';
  end_value();
}

void JsonReply::number(std::int64_t value) {
  begin_value();
  out_ += std::to_string(value);
  end_value();
}

void JsonReply::boolean(bool value) {
  begin_value();
  out_ += value ? "true" : "false";
  end_value();
}

void JsonReply::null() {
  begin_value();
  out_ += "null";
  end_value();
}

void JsonReply::error(const Error& error) {
  if (levels_.empty()) failed_ = error;
  const Duration wait = retry_after(error);
  map(1);
  name("error");
  map(wait > Duration{} ? 3 : 2);
  if (wait > Duration{}) member("retry_after_ms", static_cast<std::uint64_t>(wait.ms));
  member("code", word(error.code));
  member("message", is_utf8(error.message) ? std::string_view(error.message) : "the request is not UTF-8");
}

}  // namespace baton::server
