#include "pipeline/file_retry.h"

#include <charconv>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace baton::pipeline {
namespace {

// As it is compared; 7 and 07 are the same.
std::optional<std::string> exit_code_in(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1 || number > 255)
    return std::nullopt;
  return std::to_string(number);
}

}  // namespace

void read_retry(YamlMap& map, Complaints& complaints, ModuleSpec& spec) {
  const Yaml* retry = map.take("retry");
  if (retry == nullptr) return;
  if (retry->kind == Yaml::Kind::scalar) {
    spec.retry.max = map.number("retry", 0, 1000).value_or(0);
    return;
  }
  YamlMap one(*retry, complaints, spec.id);
  const std::uint32_t times = one.number("max", 0, 1000).value_or(1);
  spec.retry.delay = one.duration("delay").value_or(milliseconds(100));
  const Yaml* reasons = one.take("on");
  std::set<std::string> on;
  if (reasons != nullptr) {
    constexpr std::string_view kExit = "exit:";
    for (const std::string& reason : one.texts_of(*reasons, "on")) {
      const auto code = reason.starts_with(kExit) ? exit_code_in(reason.substr(kExit.size())) : std::nullopt;
      if (!code && reason != "any" && reason != "timeout" && reason != "lost")
        one.complain(*reasons, "retries are on any, timeout, lost or exit:CODE, from 1 to 255, and '" +
                                   reason + "' is none of these");
      on.insert(code ? std::string(kExit) + *code : reason);
    }
  }
  one.finish();
  if (on.contains("lost")) spec.lost_retries = times;
  const bool only_lost = on.size() == 1 && on.contains("lost");
  if (only_lost) return;
  spec.retry.max = times;
  if (on.empty() || on.contains("any")) return;
  spec.retry.when = [on](const ModuleFailure& failure) {
    if (failure.kind == FailureKind::timeout) return on.contains("timeout");
    return on.contains("exit:" + std::to_string(failure.exit_code));
  };
}

void read_allowed_failure(YamlMap& map, ModuleSpec& spec) {
  const Yaml* allowed = map.take("allow_failure");
  if (allowed == nullptr) return;
  if (allowed->kind == Yaml::Kind::scalar && allowed->text == "true") {
    spec.allow_failure = [](const ModuleFailure&) { return true; };
  } else if (allowed->kind == Yaml::Kind::list) {
    std::set<std::string> codes;
    for (const std::string& code : map.texts_of(*allowed, "allow_failure")) {
      const auto known = exit_code_in(code);
      if (!known) map.complain(*allowed, "allow_failure: '" + code + "' is no exit code from 1 to 255");
      codes.insert(known.value_or(code));
    }
    spec.allow_failure = [codes](const ModuleFailure& failure) {
      return codes.contains(std::to_string(failure.exit_code));
    };
  } else if (allowed->text != "false") {
    map.complain(*allowed, "allow_failure has to be true, false or a list of exit codes");
  }
}

}  // namespace baton::pipeline
