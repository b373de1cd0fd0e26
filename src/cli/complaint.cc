#include "cli/complaint.h"

#include <fmt/format.h>

#include <algorithm>

namespace baton::cli {

int exit_code_of(Errc code) {
  switch (code) {
    case Errc::unavailable: return kExitUnavailable;
    case Errc::deadline_exceeded:
    case Errc::outcome_unknown: return kExitUnknown;
    case Errc::permission_denied: return kExitNotAllowed;
    default: return kExitRefused;
  }
}

JsonObject json_of(const Error& error) {
  return JsonObject().object("error",
                             JsonObject().text("code", word(error.code)).text("message", error.message));
}

int complain(const Error& error, Format format) {
  if (format == Format::json) fmt::print("{}\n", json_of(error).whole());
  fmt::print(stderr, "baton: {}: {}\n", word(error.code), error.message);
  return exit_code_of(error.code);
}

int do_each(const std::vector<std::string>& names, Format format,
            const std::function<Status(const std::string&)>& what) {
  int exit_code = 0;
  for (const std::string& name : names) {
    const Status done = what(name);
    if (done) continue;
    const std::string& message = done.error().message;
    const bool is_named = message.find(name) != std::string::npos;
    const Error error{done.error().code, is_named ? message : fmt::format("{}: {}", name, message)};
    exit_code = std::max(exit_code, complain(error, format));
  }
  return exit_code;
}

}  // namespace baton::cli
