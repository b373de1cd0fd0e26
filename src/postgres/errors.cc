#include "postgres/errors.h"

#include <algorithm>
#include <array>

namespace baton::postgres {
namespace {

struct Meaning {
  std::string_view state;  // or the first two letters, for a whole class
  Errc code;
  std::string_view advice;
};

constexpr std::string_view kReadOnly = "25006";
constexpr std::string_view kNoResources = "53";
constexpr std::string_view kTooMuchForOne = "53400";  // statement, by the server's settings
constexpr std::string_view kCancelled = "57014";

// The first that fits. WH… are raised by our own functions, and say themselves what to do.
constexpr auto kMeanings = std::to_array<Meaning>({
    {"WH001", Errc::lease_lost, ""},
    {"WH002", Errc::not_found, ""},
    {"WH003", Errc::invalid_request, ""},
    {"WH004", Errc::too_large, ""},
    {"WH006", Errc::conflict, ""},
    {"23514", Errc::too_large, "a message has at most 1 MiB of data, and 64 KiB each of metadata and scope"},
    {"22", Errc::invalid_request, "an argument cannot be read"},
    {"54", Errc::too_large, ""},
    {"42883", Errc::not_found,
     "the database has no schema for streams: migrate it first (baton stream migrate)"},
    {"42P01", Errc::not_found,
     "the database has no schema for streams: migrate it first (baton stream migrate)"},
    {"42P05", Errc::io_failed,
     "somebody else prepared statements in this session: connect directly, or through a pooler in session "
     "mode"},
    {"42501", Errc::permission_denied,
     "this user may not do that: grant it the rights that docs/streams.md lists, or connect as another"},
    {kReadOnly, Errc::permission_denied, "the database is read-only: connect to the primary"},
    {"28", Errc::permission_denied, ""},
    {"25P03", Errc::deadline_exceeded,
     "the transaction stood still for too long, and the database has undone it: let the handler be quicker, "
     "or "
     "raise DatabaseOptions::transaction_idle_max"},
    {kCancelled, Errc::unavailable, "the server or somebody at it ended the call; nothing has happened"},
    {"53100", Errc::no_space, "the database's disk is full"},
    {kNoResources, Errc::exhausted, "the database has no room for this now: try later"},
    {"57P", Errc::unavailable, "the database is starting or stopping: try later"},
    {"40", Errc::unavailable, "other calls were in the way each time: try later"},
});

}  // namespace

bool is_passing(const Trouble& trouble) {
  // A server that is shut down says so, and has undone what it was doing.
  constexpr auto kStates = std::to_array<std::string_view>({"40001", "40P01", "57P01", "57P02", "57P03"});
  return trouble.is_outdated || std::ranges::find(kStates, trouble.sqlstate) != kStates.end();
}

bool is_of_the_database(const Trouble& trouble) {
  if (trouble.sqlstate.empty()) return !trouble.sent;
  if (trouble.sqlstate == kTooMuchForOne) return false;
  return is_passing(trouble) || trouble.sqlstate.starts_with(kNoResources) || trouble.sqlstate == kReadOnly;
}

bool is_cancelled(const Trouble& trouble) { return trouble.sqlstate == kCancelled; }

Error error_of(const Trouble& trouble) {
  if (trouble.sqlstate.empty()) {
    if (!trouble.sent)
      return {
          Errc::unavailable,
          "the database cannot be reached, and nothing has happened; is its address right, is it running, "
          "and may this user in? " +
              trouble.message};
    return {Errc::outcome_unknown,
            "the connection broke in the middle of the call, which may have happened or not; it is "
            "safe to repeat: " +
                trouble.message};
  }
  for (const Meaning& meaning : kMeanings) {
    if (!trouble.sqlstate.starts_with(meaning.state)) continue;
    if (meaning.advice.empty()) return {meaning.code, trouble.message};
    return {meaning.code, std::string(meaning.advice) + " (" + trouble.message + ")"};
  }
  return {Errc::io_failed, "the database refused: " + trouble.message + " (" + trouble.sqlstate + ")"};
}

}  // namespace baton::postgres
