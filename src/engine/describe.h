// Entries as people and scripts read them: the fields of each, by name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/apply.h"
#include "core/event.h"

namespace baton::engine {

struct Field {
  std::string_view name;
  std::string value;  // for people
  std::string json;   // for programs
};

std::vector<Field> fields_of(const core::Event& event);

// In which run an entry was recorded, as far as entries have been seen. Clients know a task by the run and
// the lsn of its first entry; further entries have only the lsn.
class Epochs {
 public:
  void saw(const core::Stamp& stamp);  // in the order of the log
  std::optional<core::Epoch> of(core::Lsn lsn) const;

 private:
  std::map<core::Lsn, core::Epoch> first_;  // entry that was seen of each
};

// "      42  2026-11-15T12:30:01.250Z  LeaseGranted   id=ced7c46-29 worker=w1 attempt=1 …". Payloads are
// shown by size alone. docs/log-format.md explains a line.
std::string describe(const core::Event& event, const core::Stamp& stamp, const Epochs& epochs = {});
// The same as one line of JSON.
std::string describe_json(const core::Event& event, const core::Stamp& stamp, const Epochs& epochs = {});
std::string json_string(std::string_view text);  // quoted and escaped

}  // namespace baton::engine
