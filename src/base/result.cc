#include "base/result.h"

#include "base/check.h"

namespace baton {

std::string_view word(Errc code) {
  switch (code) {
    case Errc::invalid_request: return "INVALID_REQUEST";
    case Errc::too_large: return "TOO_LARGE";
    case Errc::not_found: return "NOT_FOUND";
    case Errc::conflict: return "CONFLICT";
    case Errc::wrong_state: return "WRONG_STATE";
    case Errc::lease_lost: return "LEASE_LOST";
    case Errc::lease_unknown: return "LEASE_UNKNOWN";
    case Errc::hold_exceeded: return "HOLD_EXCEEDED";
    case Errc::exhausted: return "EXHAUSTED";
    case Errc::io_failed: return "IO_FAILED";
    case Errc::no_space: return "NO_SPACE";
    case Errc::permission_denied: return "PERMISSION_DENIED";
    case Errc::locked: return "LOCKED";
    case Errc::corrupt: return "CORRUPT";
    case Errc::unsupported_version: return "UNSUPPORTED_VERSION";
    case Errc::closed: return "CLOSED";
    case Errc::unavailable: return "UNAVAILABLE";
    case Errc::deadline_exceeded: return "DEADLINE_EXCEEDED";
    case Errc::outcome_unknown: return "OUTCOME_UNKNOWN";
  }
  BATON_CHECK(false && "unknown error code");
}

std::optional<Errc> code_of(std::string_view text) {
  for (int code = 0; code <= static_cast<int>(kLastErrc); ++code) {
    if (word(static_cast<Errc>(code)) == text) return static_cast<Errc>(code);
  }
  return {};
}

}  // namespace baton
