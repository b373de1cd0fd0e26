// What a command that talks to a coordinator says when something went wrong, and what it exits with.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/json_object.h"

namespace baton::cli {

inline constexpr int kExitRefused = 1;       // and the message says why
inline constexpr int kExitEndedBadly = 2;    // a task that was waited for failed or died
inline constexpr int kExitTimeIsUp = 3;      // a task that was waited for has not ended yet
inline constexpr int kExitNoInput = 66;      // EX_NOINPUT: a file cannot be read
inline constexpr int kExitUnavailable = 69;  // EX_UNAVAILABLE: no coordinator could be reached
inline constexpr int kExitUnknown = 75;      // EX_TEMPFAIL: no answer came; it may have happened or not
inline constexpr int kExitNotAllowed = 77;   // EX_NOPERM: a wrong token, or a verb that it does not allow

int exit_code_of(Errc code);

// What the coordinator or the system says, in terms of our options.
Error in_our_words(Error error);

// A name that no queue can have.
std::string no_queue(const std::string& name);

// As the protocol has it: {"error":{"code":"NOT_FOUND","message":"no such task"}}
JsonObject json_of(const Error& error);

enum class Format : bool { text, json };
inline Format format_of(bool json) { return json ? Format::json : Format::text; }

// With --json, on standard output. Standard error has it in words already.
void tell_programs(const Error& error, Format format);
// Says it on standard error, and with --json on standard output too. Returns the exit code.
int complain(const Error& error, Format format = Format::text);

// Does something to each of several tasks or queues, and complains where it cannot be done, by name. Returns
// the exit code of the worst.
int do_each(const std::vector<std::string>& names, Format format,
            const std::function<Status(const std::string& name)>& what);

}  // namespace baton::cli
