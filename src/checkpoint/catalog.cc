#include "checkpoint/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/check.h"
#include "base/random_name.h"

namespace baton::checkpoint {
namespace {

constexpr std::string_view kManifestEnd = ".manifest";
constexpr std::string_view kAsideEnd = ".tmp";
constexpr std::string_view kStepBegin = "step-";

// a0001-0123456789abcdef, perhaps with an ending. Nothing else is ours, whatever else lies about.
bool is_attempt(std::string_view name) {
  constexpr std::size_t kRandomDigits = 16;
  const std::size_t dash = name.find('-');
  if (!name.starts_with('a') || dash == name.npos || dash < 5) return false;
  const std::string_view random = name.substr(dash + 1, kRandomDigits);
  const std::string_view end = name.substr(std::min(name.size(), dash + 1 + kRandomDigits));
  return number_in(name.substr(1, dash - 1)) && random.size() == kRandomDigits &&
         random.find_first_not_of("0123456789abcdef") == random.npos && (end.empty() || end == kManifestEnd);
}

std::optional<std::uint64_t> number_of_attempt(std::string_view name) {
  return number_in(name.substr(1, name.find('-') - 1));
}

// Not one that was copied from elsewhere.
Result<CheckpointMetadata> of_this(const CheckpointId& id, CheckpointMetadata metadata) {
  if (metadata.id == id) return metadata;
  return failure(Errc::corrupt,
                 fmt::format("{} is the manifest of {}", manifest_path(id), to_text(metadata.id)));
}

}  // namespace

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

std::string step_prefix(std::uint64_t step) { return fmt::format("{}{:010}", kStepBegin, step); }

std::optional<std::uint64_t> step_in(std::string_view prefix) {
  if (!prefix.starts_with(kStepBegin)) return {};
  return number_in(prefix.substr(kStepBegin.size()));
}

Status check_prefix(const std::string& prefix) {
  const bool fits = !prefix.empty() && prefix.size() <= kPrefixBytesMax && prefix.front() != '.' &&
                    prefix != kPinsDirectory && std::ranges::all_of(prefix, [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                             c == '.' || c == '_' || c == '-';
                    });
  if (fits) return {};
  return failure(
      Errc::invalid_request,
      fmt::format(
          "the name of a checkpoint has 1 to {} letters, digits, '.', '_' and '-', does not begin with "
          "'.' and is not \"{}\"",
          kPrefixBytesMax, kPinsDirectory));
}

Status check_new_prefix(const std::string& prefix) {
  if (auto fits = check_prefix(prefix); !fits) return fits;
  const bool is_digits = prefix.find_first_not_of("0123456789") == prefix.npos;  // however many
  if (prefix != "latest" && !is_digits) return {};
  return failure(
      Errc::invalid_request,
      fmt::format("a checkpoint cannot be called \"{}\": \"latest\" means the newest, and only digits "
                  "the one of that step",
                  prefix));
}

std::string_view word(AttemptState state) {
  switch (state) {
    case AttemptState::committed: return "committed";
    case AttemptState::aborted: return "aborted";
    case AttemptState::undecided: return "undecided";
    case AttemptState::unreadable: return "unreadable";
  }
  BATON_CHECK(false && "unknown state");
}

std::uint64_t Attempt::step() const {
  if (const auto step = step_in(id.prefix)) return *step;
  return metadata ? metadata->training.step : UINT64_MAX;
}

Result<std::vector<ListedAttempt>> list_prefix(Storage& storage, const std::string& prefix) {
  auto entries = storage.list(prefix);
  if (!entries) return std::unexpected(entries.error());
  std::map<CheckpointId, ListedAttempt> by_id;
  for (const StorageEntry& entry : *entries) {
    if (!is_attempt(entry.name)) continue;
    const bool is_manifest = entry.name.ends_with(kManifestEnd);
    if (entry.is_directory == is_manifest) continue;
    CheckpointId id{prefix,
                    entry.name.substr(0, entry.name.size() - (is_manifest ? kManifestEnd.size() : 0))};
    ListedAttempt& attempt = by_id[id];
    attempt.id = std::move(id);
    attempt.is_decided |= is_manifest;
    attempt.modified_ms = std::max(attempt.modified_ms, entry.modified_ms);
  }
  std::vector<ListedAttempt> listed;
  listed.reserve(by_id.size());
  for (auto& [id, attempt] : by_id) listed.push_back(std::move(attempt));
  return listed;
}

std::optional<Attempt> read_attempt(Storage& storage, const ListedAttempt& listed) {
  Attempt attempt{.id = listed.id, .metadata = {}, .trouble = {}, .modified_ms = listed.modified_ms};
  if (!listed.is_decided) return attempt;
  auto metadata = read_metadata(storage, attempt.id);
  if (metadata) {
    attempt.state = AttemptState::committed;
    attempt.metadata = *std::move(metadata);
  } else if (metadata.error().code == Errc::not_found) {
    return {};
  } else if (metadata.error().code == Errc::wrong_state) {
    attempt.state = AttemptState::aborted;
  } else {
    attempt.state = AttemptState::unreadable;
    attempt.trouble = metadata.error();
  }
  return attempt;
}

Status for_each_attempt(Storage& storage, const std::function<Status(Attempt)>& visit) {
  auto prefixes = storage.list("");
  if (!prefixes) return std::unexpected(prefixes.error());
  for (const StorageEntry& entry : *prefixes) {
    if (!entry.is_directory || !check_prefix(entry.name)) continue;  // pins, or what is not ours: lost+found
    const auto listed = list_prefix(storage, entry.name);
    if (!listed && listed.error().code == Errc::not_found) continue;  // it was pruned just now
    if (!listed) return std::unexpected(listed.error());
    for (const ListedAttempt& one : *listed) {
      auto attempt = read_attempt(storage, one);
      if (!attempt) continue;
      if (auto visited = visit(*std::move(attempt)); !visited) return visited;
    }
  }
  return {};
}

Result<std::vector<Attempt>> list_attempts(Storage& storage) {
  std::vector<Attempt> attempts;
  const Status all = for_each_attempt(storage, [&](Attempt attempt) -> Status {
    attempts.push_back(std::move(attempt));
    return {};
  });
  if (!all) return std::unexpected(all.error());
  const auto pins = storage.list(std::string(kPinsDirectory));
  if (!pins && pins.error().code != Errc::not_found) return std::unexpected(pins.error());
  std::set<std::string_view> pinned;
  if (pins)
    for (const StorageEntry& pin : *pins) pinned.insert(pin.name);
  for (Attempt& attempt : attempts) attempt.is_pinned = pinned.contains(attempt.id.prefix);
  std::ranges::sort(attempts, {},
                    [](const Attempt& attempt) { return std::pair(attempt.step(), attempt.id); });
  return attempts;
}

Result<CheckpointMetadata> read_metadata(Storage& storage, const CheckpointId& id) {
  const std::string path = manifest_path(id);
  auto text = storage.get(path);
  if (!text) return std::unexpected(text.error());
  auto metadata = MetadataSerializer::parse(text_of(*text), path);
  if (!metadata) return metadata;
  return of_this(id, *std::move(metadata));
}

bool is_manifest_aside(std::string_view name) {
  const std::size_t end = name.find(kManifestEnd);
  return end != name.npos && is_attempt(name.substr(0, end)) && name.ends_with(kAsideEnd);
}

Result<CheckpointId> new_attempt(Storage& storage, const std::string& prefix) {
  auto entries = storage.list(prefix);
  if (!entries && entries.error().code != Errc::not_found) return std::unexpected(entries.error());
  std::uint64_t last = 0;
  if (entries) {
    for (const StorageEntry& entry : *entries)
      if (is_attempt(entry.name)) last = std::max(last, number_of_attempt(entry.name).value_or(0));
  }
  return CheckpointId{prefix, fmt::format("a{:04}-{}", last + 1, random_name())};
}

}  // namespace baton::checkpoint
