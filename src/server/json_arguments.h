// A verb's arguments from a JSON object, or from the query of a URL.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "server/arguments.h"

namespace baton::server {

class JsonArguments {
 public:
  // Besides the verb's own there may be "namespace".
  Status read_object(std::span<const Parameter> parameters, std::string_view json);
  Status read_query(std::span<const Parameter> parameters, std::string_view query);

  Arguments& arguments() { return arguments_; }
  const std::string& ns() const { return ns_; }

 private:
  Status add(std::span<const Parameter> parameters, std::string_view name, std::string value);

  std::string ns_ = "default";
  std::deque<std::string> kept_;  // what the arguments point to
  Arguments arguments_;
};

}  // namespace baton::server
