#include "cli/complaint.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output.h"
#include "cli/quantities.h"

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

namespace {

struct Saying {
  std::string_view theirs;
  std::string_view from;  // the beginning of what is replaced
  std::string_view ours;
};
constexpr Saying kSayings[] = {
    {"NOAUTH ", "NOAUTH ", "the coordinator wants a token: --token-file FILE, or BATON_TOKEN"},
    {"WRONGPASS ", "WRONGPASS ",
     "the coordinator does not know this token: look at --token-file and --user, or BATON_TOKEN and "
     "BATON_USER"},
    {"certificate required",
     "TLS: ", "the coordinator wants a certificate: --tls-certificate FILE and --tls-key FILE"},
    {"trusted (the ca)", "(the ca)", "(--tls-ca FILE)"},
    {"; the handler was stopped", "; the handler", "; the command was stopped"},
    {"; the handler is stopped", "; the handler", "; the command is stopped"},
};
constexpr std::string_view kNoTls = "TLS: wrong version number";  // how OpenSSL takes an answer in plain text

}  // namespace

Error in_our_words(Error error) {
  std::string& message = error.message;
  // Whoever names an option or an address knows better what is wanted.
  if (message.find("--") != std::string::npos || message.find("redis://") != std::string::npos) return error;
  for (const Saying& saying : kSayings) {
    if (message.find(saying.theirs) == std::string::npos) continue;
    message.replace(std::min(message.find(saying.from), message.size()), std::string::npos, saying.ours);
    return error;
  }
  if (const std::size_t at = message.find(kNoTls); at != std::string::npos)
    return {Errc::unavailable, message.substr(0, at) + "that port does not speak TLS; leave out --tls"};
  return error;
}

std::string no_queue(const std::string& name) {
  return fmt::format("'{}' is no queue: a name is 1 to 128 graphic ASCII characters", name);
}

JsonObject json_of(const Error& error) {
  JsonObject said;
  said.text("code", word(error.code)).text("message", error.message);
  if (error.retry_after > Duration{})
    said.number("retry_after_ms", static_cast<std::uint64_t>(error.retry_after.ms));
  return JsonObject().object("error", said);
}

void tell_programs(const Error& error, Format format) {
  if (format == Format::json) to_output("{}\n", json_of(error).whole());
}

int complain(const Error& said, Format format) {
  const Error error = in_our_words(said);
  tell_programs(error, format);
  to_errors("baton: {}: {}{}\n", word(error.code), error.message,
            error.retry_after > Duration{} ? "; try again in " + rough_text(error.retry_after) : "");
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
    Error error = done.error();
    if (!is_named) error.message = fmt::format("{}: {}", name, message);
    exit_code = std::max(exit_code, complain(error, format));
  }
  return exit_code;
}

}  // namespace baton::cli
