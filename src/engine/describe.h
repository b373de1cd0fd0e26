// Entries as people and scripts read them: the fields of each, by name.
#pragma once

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

// "      42  2026-11-15T12:30:01.250Z  LeaseGranted   task=41 worker=w1 attempt=1 …". Payloads are shown by
// size alone. docs/log-format.md explains a line.
std::string describe(const core::Event& event, const core::Stamp& stamp);
// The same as one line of JSON.
std::string describe_json(const core::Event& event, const core::Stamp& stamp);
std::string json_string(std::string_view text);  // quoted and escaped

}  // namespace baton::engine
