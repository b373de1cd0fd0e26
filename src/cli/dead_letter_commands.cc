#include "cli/dead_letter_commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/json_object.h"
#include "cli/quantities.h"

namespace baton::cli {
namespace {

Status check_numbers(const std::vector<std::string>& letters) {
  for (const std::string& text : letters) {
    if (auto number = read_number(text, 1, INT64_MAX); !number) return std::unexpected(number.error());
  }
  return {};
}

Status choose(const StreamOptions& options) {
  if (!options.letters.empty() && options.all)
    return failure(Errc::invalid_request, "letters that are named and --all exclude each other");
  if (options.letters.empty() && !options.all)
    return failure(Errc::invalid_request, "which letters? Name them, or say --all");
  return check_numbers(options.letters);
}

// Complains of those that were named and are not there; of the others it was done.
Status all_were_there(const std::vector<std::string>& letters, const Rows& found) {
  std::vector<std::string> missing;
  for (const std::string& letter : letters) {
    const bool is_there = std::ranges::any_of(found, [&](const Row& row) { return row[0] == letter; });
    if (!is_there) missing.push_back(letter);
  }
  if (missing.empty()) return {};
  return failure(Errc::not_found,
                 fmt::format("there is no dead letter {}; `baton stream dead list` lists them",
                             fmt::join(missing, ", ")));
}

Result<Rows> find_named(StreamSource& source, const StreamOptions& options) {
  return options.all ? Rows() : source.letters(options.letters, kLetterNumber);
}

void say(const StreamOptions& options, const char* what, const char* word, std::uint64_t number) {
  if (options.json)
    fmt::print("{}\n", JsonObject().number(word, number).whole());
  else
    fmt::print("{} {}\n", what, counted(number, "dead letter"));
}

}  // namespace

Status dead_list(StreamSource& source, const StreamOptions& options) {
  const auto letters = source.letters({}, kLetterSummary);
  if (!letters) return std::unexpected(letters.error());
  options.json ? print_json(kLetterSummary, *letters) : print_table(kLetterSummary, *letters);
  return {};
}

Status dead_show(StreamSource& source, const StreamOptions& options) {
  if (auto fits = check_numbers(options.letters); !fits) return fits;
  for (const std::string& letter : options.letters) {
    const auto found = source.letters({letter}, kLetterFields);
    if (!found) return std::unexpected(found.error());
    if (found->empty()) return all_were_there({letter}, *found);
    print_json(kLetterFields, *found);
  }
  return {};
}

Status dead_replay(StreamSource& source, const StreamOptions& options) {
  if (auto fits = choose(options); !fits) return fits;
  const auto known = find_named(source, options);
  if (!known) return std::unexpected(known.error());
  const auto replayed = source.replay(options.letters);
  if (!replayed) return std::unexpected(replayed.error());
  say(options, "put back", "replayed", *replayed);
  return all_were_there(options.letters, *known);
}

Status dead_purge(StreamSource& source, const StreamOptions& options) {
  if (auto fits = choose(options); !fits) return fits;
  const auto known = find_named(source, options);
  if (!known) return std::unexpected(known.error());
  const auto purged = source.purge(options.letters, options.older_than);
  if (!purged) return std::unexpected(purged.error());
  say(options, "forgot", "purged", *purged);
  if (auto there = all_were_there(options.letters, *known); !there) return there;
  if (options.all || *purged == known->size()) return {};
  return failure(Errc::conflict, "the others have not been dead for that long");
}

}  // namespace baton::cli
