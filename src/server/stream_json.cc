#include "server/stream_json.h"

#include <fmt/format.h>

#include <concepts>
#include <limits>
#include <type_traits>

#include <boost/json.hpp>

#include "stream/work_batch.h"

namespace baton::server {
namespace {

namespace json = boost::json;
using namespace stream;

constexpr std::size_t kDepthMax = 100;  // of the data of a message, as stream/json_text has it

// Reads the members of one item, and remembers the first thing that is wrong with it.
class Members {
 public:
  explicit Members(const json::object& object) : object_(object) {}

  template <class Tag>
  void operator()(std::string_view name, UuidOf<Tag>& value) {
    if (const json::value* found = find(name)) uuid(name, *found, value.value);
  }
  template <class Tag>
  void operator()(std::string_view name, std::optional<UuidOf<Tag>>& value) {
    const json::value* found = find(name);
    if (found != nullptr && !found->is_null()) uuid(name, *found, value.emplace().value);
  }
  void operator()(std::string_view name, std::vector<MessageId>& values) {
    const json::value* found = find(name);
    if (found == nullptr) return;
    if (!found->is_array()) return complain(name, "a list of ids");
    for (const json::value& one : found->get_array()) uuid(name, one, values.emplace_back().value);
  }
  void operator()(std::string_view name, std::string& value) {
    const json::value* found = find(name);
    if (found == nullptr) return;
    if (!found->is_string()) return complain(name, "a string");
    value = found->get_string();
  }
  void operator()(std::string_view name, bool& value) {
    const json::value* found = find(name);
    if (found == nullptr) return;
    if (!found->is_bool()) return complain(name, "true or false");
    value = found->get_bool();
  }
  void operator()(std::string_view name, std::int32_t& value) { number(name, value); }
  void operator()(std::string_view name, std::optional<Epoch>& value) {
    const json::value* found = find(name);
    if (found != nullptr && !found->is_null()) number(name, value.emplace().value);
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void operator()(std::string_view name, Enum& value) {
    auto plain = static_cast<std::underlying_type_t<Enum>>(value);
    number(name, plain);
    value = static_cast<Enum>(plain);
  }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void operator()(std::string_view name, std::optional<Enum>& value) {
    const json::value* found = find(name);
    if (found != nullptr && !found->is_null()) (*this)(name, value.emplace());
  }
  // JSON that nobody looks into: as a value, or as a text that is kept to the letter.
  void nested(std::string_view name, std::string& value) {
    if (const json::value* found = find(name)) value = json::serialize(*found);
    (*this)(std::string(name) + "_text", value);
  }

  void require(std::string_view name, std::string_view wanted) {
    if (object_.if_contains(name) == nullptr) complain(name, wanted);
  }

  // Nothing may be left over: a misspelt member would be one that is not heeded.
  Status finish() {
    if (complaint_.empty() && used_ < object_.size()) {
      for (const auto& [name, value] : object_) {
        if (!heeded_.contains(name))
          complaint_ = fmt::format("no such member: {:.40}", std::string_view(name));
      }
    }
    if (complaint_.empty()) return {};
    return failure(Errc::invalid_request, complaint_);
  }

 private:
  const json::value* find(std::string_view name) {
    const json::value* found = object_.if_contains(name);
    if (found == nullptr) return nullptr;
    ++used_;
    heeded_[name] = true;
    return found;
  }
  void complain(std::string_view name, std::string_view wanted) {
    if (complaint_.empty()) complaint_ = fmt::format("{} must be {}", name, wanted);
  }
  void uuid(std::string_view name, const json::value& from, Uuid& into) {
    const auto parsed = from.is_string() ? parse_uuid(from.get_string()) : std::nullopt;
    if (!parsed) return complain(name, "an id such as 01890a5d-ac96-774b-bcce-b302099a8057");
    into = *parsed;
  }
  template <std::integral Number>
  void number(std::string_view name, Number& value) {
    const json::value* found = object_.if_contains(name);
    if (found == nullptr) return;
    find(name);
    if (!found->is_int64() || found->get_int64() < std::numeric_limits<Number>::min() ||
        found->get_int64() > std::numeric_limits<Number>::max())
      return complain(name, "a whole number");
    value = static_cast<Number>(found->get_int64());
  }

  const json::object& object_;
  std::size_t used_ = 0;
  json::object heeded_;
  std::string complaint_;
};

void members(Members& m, Held& item) { m("message", item.message), m("epoch", item.epoch); }
void members(Members& m, Completion& item) {
  members(m, item.held), m("status", item.status);
  // Left out, it would give the message back, which is not what somebody means who says that it is done.
  m.require("status",
            "given: 2 for a message of the inbox that is done, 4 for one of the outbox, 0 to give it back");
}
void members(Members& m, Failure& item) {
  members(m, item.held), m("completed", item.completed), m("error", item.error);
  m("reason", item.reason), m("policy", item.policy);
}
void members(Members& m, NewMessage& item) {
  m("message", item.id), m("stream", item.stream), m("target", item.target), m("type", item.type);
  m("envelope_type", item.envelope_type), m("is_event", item.is_event), m("policy", item.policy);
  m.nested("data", item.data), m.nested("metadata", item.metadata), m.nested("scope", item.scope);
}
void members(Members& m, ReceptorResult& item) {
  m("event", item.event), m("receptor", item.receptor), m("status", item.status);
  m("error", item.error), m("attempt", item.attempt);
}
void members(Members& m, PerspectiveResult& item) {
  m("stream", item.stream), m("perspective", item.perspective), m("last_event", item.last_event);
  m("processed", item.processed), m("status", item.status), m("error", item.error);
}

template <class Item>
Status read_list(std::string_view text, std::vector<Item>& into) {
  json::error_code error;
  json::parse_options options;
  options.max_depth = kDepthMax + 2;
  const json::value parsed = json::parse(text, error, {}, options);
  if (error) return failure(Errc::invalid_request, "a list is not JSON: " + error.message());
  if (!parsed.is_array()) return failure(Errc::invalid_request, "a list has to be a JSON array");
  // Before anything is made of them: an item takes a hundred times as much as `{}` does.
  if (parsed.get_array().size() > kItemsMax)
    return failure(Errc::too_large, "a list has at most 10000 items");
  into.reserve(parsed.get_array().size());
  for (const json::value& one : parsed.get_array()) {
    if (!one.is_object()) return failure(Errc::invalid_request, "each item of a list is a JSON object");
    Members read(one.get_object());
    members(read, into.emplace_back());
    if (auto fine = read.finish(); !fine) return fine;
  }
  return {};
}

}  // namespace

Status read_json(std::string_view text, std::vector<Completion>& into) { return read_list(text, into); }
Status read_json(std::string_view text, std::vector<Failure>& into) { return read_list(text, into); }
Status read_json(std::string_view text, std::vector<Held>& into) { return read_list(text, into); }
Status read_json(std::string_view text, std::vector<NewMessage>& into) { return read_list(text, into); }
Status read_json(std::string_view text, std::vector<ReceptorResult>& into) { return read_list(text, into); }
Status read_json(std::string_view text, std::vector<PerspectiveResult>& into) {
  return read_list(text, into);
}

}  // namespace baton::server
