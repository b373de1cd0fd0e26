#include "cli/submission_json.h"

#include <string_view>
#include <utility>
#include <vector>

#include "server/json_arguments.h"
#include "server/verb.h"

namespace baton::cli {
namespace {

constexpr std::string_view kBody = "the body";  // of a request, which is not what we read

// Those of the verb, though nothing is missing where there is a default.
std::vector<server::Parameter> parameters_with(const client::Submit& defaults) {
  const server::Verb* submit = server::find_verb("submit");
  std::vector<server::Parameter> parameters(submit->parameters.begin(), submit->parameters.end());
  for (server::Parameter& parameter : parameters) {
    if (parameter.name == "queue" && !defaults.queue.empty()) parameter.place = server::Place::option;
  }
  return parameters;
}

}  // namespace

Result<client::Submit> parse_submission(std::string_view line, const client::Submit& defaults) {
  const std::vector<server::Parameter> parameters = parameters_with(defaults);
  server::JsonArguments json;
  if (line.find_first_not_of(" \t\r") == line.npos)
    return failure(Errc::invalid_request, "the line is empty");
  if (auto read = json.read_object(parameters, line); !read) {
    Error error = read.error();
    if (error.message.starts_with(kBody)) error.message.replace(0, kBody.size(), "the line");
    return std::unexpected(std::move(error));
  }
  server::Arguments& arguments = json.arguments();
  if (json.ns() != "default")
    return failure(Errc::invalid_request, "the namespace is the connection's: --namespace");

  client::Submit task = defaults;
  const auto duration = [&](std::string_view name, std::optional<Duration>& value) {
    if (arguments.has(name)) value = arguments.duration(name, {});
  };
  const auto number = [&](std::string_view name, std::optional<std::uint32_t>& value) {
    if (arguments.has(name)) value = static_cast<std::uint32_t>(arguments.number(name, 0, UINT32_MAX));
  };
  task.queue = arguments.name("queue", defaults.queue);
  task.key = arguments.name("key");
  task.payload = arguments.text("payload");
  client::TaskOptions& options = task.options;
  options.priority = static_cast<std::uint32_t>(arguments.number("priority", options.priority, 9));
  options.delay = arguments.duration("delay_ms", options.delay);
  for (const std::string_view name : arguments.all("capability")) options.capabilities.emplace_back(name);
  number("max_failures", options.max_failures);
  duration("backoff_ms", options.backoff);
  number("backoff_factor_percent", options.backoff_factor_percent);
  duration("backoff_max_ms", options.backoff_max);
  number("jitter_percent", options.jitter_percent);
  number("max_attempts", options.max_attempts);
  duration("max_hold_ms", options.max_hold);
  if (arguments.complaint()) return std::unexpected(*arguments.complaint());
  return task;
}

}  // namespace baton::cli
