#include "client/stream_json.h"

#include <concepts>

#include "wire/text.h"

namespace baton::client {
namespace {

using namespace stream;

// One item of a list.
class Object {
 public:
  explicit Object(std::string& out) : out_(out) { out_ += '{'; }
  ~Object() { out_ += '}'; }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  Object& text(std::string_view name, std::string_view value) {
    begin(name);
    wire::put_json_string(out_, value);
    return *this;
  }
  Object& text_if(std::string_view name, std::string_view value) {
    return value.empty() ? *this : text(name, value);
  }
  Object& id(std::string_view name, const Uuid& value) { return text(name, to_text(value)); }
  Object& number(std::string_view name, std::int64_t value) {
    begin(name);
    out_ += std::to_string(value);
    return *this;
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  Object& number(std::string_view name, Enum value) {
    return number(name, static_cast<std::int64_t>(value));
  }
  Object& ids(std::string_view name, const std::vector<MessageId>& values) {
    begin(name);
    out_ += '[';
    for (const MessageId& value : values) {
      if (out_.back() != '[') out_ += ',';
      wire::put_json_string(out_, to_text(value.value));
    }
    out_ += ']';
    return *this;
  }
  Object& truth(std::string_view name, bool value) {
    begin(name);
    out_ += value ? "true" : "false";
    return *this;
  }

 private:
  void begin(std::string_view name) {
    if (out_.back() != '{') out_ += ',';
    wire::put_json_string(out_, name);
    out_ += ':';
  }
  std::string& out_;
};

void add(Object& out, const Held& held) {
  out.id("message", held.message.value);
  if (held.epoch) out.number("epoch", held.epoch->value);
}
void add(Object& out, const Completion& item) {
  add(out, item.held);
  out.number("status", item.status);
}
void add(Object& out, const Failure& item) {
  add(out, item.held);
  out.number("completed", item.completed).text("error", item.error).number("reason", item.reason);
  if (item.policy) out.number("policy", *item.policy);
}
void add(Object& out, const NewMessage& item) {
  out.id("message", item.id.value).text("type", item.type).text("target", item.target);
  if (item.stream) out.id("stream", item.stream->value);
  out.text_if("envelope_type", item.envelope_type).text("data_text", item.data);
  out.text_if("metadata_text", item.metadata).text_if("scope_text", item.scope);
  out.truth("is_event", item.is_event).number("policy", item.policy);
}
void add(Object& out, const ReceptorResult& item) {
  out.id("event", item.event.value).text("receptor", item.receptor).number("status", item.status);
  out.text_if("error", item.error).number("attempt", item.attempt);
}
void add(Object& out, const PerspectiveResult& item) {
  out.id("stream", item.stream.value).text("perspective", item.perspective);
  out.id("last_event", item.last_event.value).ids("processed", item.processed);
  out.number("status", item.status).text_if("error", item.error);
}

template <class Item>
std::string list(const std::vector<Item>& items) {
  std::string out = "[";
  for (const Item& item : items) {
    if (out.size() > 1) out += ',';
    Object object(out);
    add(object, item);
  }
  return out + "]";
}

}  // namespace

std::string to_json(const std::vector<NewMessage>& messages) { return list(messages); }
std::string to_json(const std::vector<Completion>& completions) { return list(completions); }
std::string to_json(const std::vector<Failure>& failures) { return list(failures); }
std::string to_json(const std::vector<Held>& held) { return list(held); }
std::string to_json(const std::vector<ReceptorResult>& results) { return list(results); }
std::string to_json(const std::vector<PerspectiveResult>& results) { return list(results); }

}  // namespace baton::client
