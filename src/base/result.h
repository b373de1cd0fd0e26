// Result<T>: a value, or an Error that says what happened, to what, and what to do.
//
// A code exists where some caller would act differently; everything else belongs in the message.
// The words are part of the interface: clients match on them, so they never change meaning.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace baton {

enum class Errc : std::uint8_t {
  // refusals of a request
  invalid_request,  // an argument is malformed or out of range
  too_large,        // an argument is over its documented limit
  not_found,        // no such task, queue or key in this namespace
  conflict,         // the same key or lease was already used with other content
  wrong_state,      // the task is not in a state that allows this
  lease_lost,       // the lease was held once and no longer is
  lease_unknown,    // this lease was never granted for this task, or is too old to be remembered
  hold_exceeded,    // the task's maximum hold time is used up
  exhausted,        // a limit on what the coordinator holds, or the disk, is reached: try later
  // failures of the world around
  io_failed,
  no_space,
  permission_denied,
  locked,               // another process has the data directory
  corrupt,              // bytes that were acknowledged are damaged or missing
  unsupported_version,  // written by a baton this one does not understand
  closed,               // the coordinator is stopping or has stopped
  // what a client says of its own accord
  unavailable,        // no coordinator could be reached; nothing was asked
  deadline_exceeded,  // time was up before anything was asked, or before a question was answered
  outcome_unknown,    // it was asked, and the answer did not come: it may have happened or not
};
inline constexpr Errc kLastErrc = Errc::outcome_unknown;

std::string_view word(Errc code);
std::optional<Errc> code_of(std::string_view word);

struct Error {
  Errc code;
  std::string message;
  Duration retry_after;  // worth another try after this long, if it is known

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
 public:
  using std::expected<T, Error>::expected;
};

using Status = Result<void>;

inline std::unexpected<Error> failure(Errc code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

}  // namespace baton
