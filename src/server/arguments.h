// What a verb was called with, by name. The same verb reads the same arguments whether they came as the words
// of a command or as the members of a JSON object.
//
//   SUBMIT mail hello PRIORITY 3           {"queue": "mail", "payload": "hello", "priority": 3}
//
// A reader returns a harmless value for what is wrong and remembers the first complaint, so a verb reads all
// its arguments and asks once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/request.h"

namespace baton::server {

enum class Kind : std::uint8_t {
  text,
  bytes,   // any; in JSON a string, or base64 under the name with _base64 behind it
  number,  // not negative
  flag,    // named or not; in JSON a boolean
  json,    // any value, as text; in JSON the value itself
};

// How a parameter stands in a command. In JSON all are members; those that repeat are arrays.
enum class Place : std::uint8_t {
  position,  // required, in its place
  counted,   // how many, then that many; behind the positions
  option,    // NAME value
  repeated,  // NAME value NAME value …
};

struct Parameter {
  std::string_view name;
  Kind kind = Kind::text;
  Place place = Place::option;
  std::string_view about;
};

class Arguments {
 public:
  // The words behind the verb.
  Status read(std::span<const Parameter> parameters, std::span<const std::string_view> words);

  // One by one instead, after a clear(). The value is borrowed.
  void clear();
  void add(const Parameter& parameter, std::string_view value) { given_.push_back({&parameter, value}); }

  // All but so much, of what many took; what was given is forgotten.
  void give_back_room(std::size_t kept_bytes);

  // As if this had been given, if there is such a parameter.
  void replace(std::span<const Parameter> parameters, std::string_view name, std::string_view value);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  bool has_options() const {
    return std::ranges::any_of(given_,
                               [](const Given& given) { return given.parameter->place >= Place::option; });
  }
  std::string_view text(std::string_view name) const;  // empty if it is not there
  std::string name(std::string_view name, std::string_view otherwise = {});
  core::Blob blob(std::string_view name) const;
  std::uint64_t number(std::string_view name, std::uint64_t otherwise, std::uint64_t max);
  Duration duration(std::string_view name, Duration otherwise);
  core::TaskRef task(std::string_view name);
  core::LeaseId lease(std::string_view name);
  core::Capabilities capabilities(std::string_view name);
  std::vector<std::string_view> all(std::string_view name) const;
  std::vector<std::pair<std::string, std::string>> listed() const;  // all that were given

  void complain(Errc code, std::string message);
  const std::optional<Error>& complaint() const { return complaint_; }

 private:
  struct Given {
    const Parameter* parameter;
    std::string_view value;
  };
  const Given* find(std::string_view name) const;

  std::vector<Given> given_;
  std::optional<Error> complaint_;
};

// A task as users name it: its id, or "key:" and the key it was submitted under.
Result<core::TaskRef> parse_task_ref(std::string_view text);

bool same_word(std::string_view a, std::string_view b);  // whatever the case of its letters

}  // namespace baton::server
