#include "checkpoint/checkpoint_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace baton::checkpoint {

CheckpointSearch::CheckpointSearch(Storage& storage, std::string name)
    : storage_(&storage), name_(std::move(name)), step_(number_in(name_)) {}

Result<CheckpointSearch> CheckpointSearch::begin(Storage& storage, const std::string& name) {
  CheckpointSearch search(storage, name);
  if (auto listed = search.list(); !listed) return std::unexpected(listed.error());
  return search;
}

Status CheckpointSearch::list() {
  std::vector<std::string> prefixes;
  if (is_of_one_name()) {
    prefixes.push_back(name_.substr(0, name_.find('/')));
  } else {
    auto entries = storage_->list("");
    if (!entries) return std::unexpected(entries.error());
    for (const StorageEntry& entry : *entries)
      if (entry.is_directory) prefixes.push_back(entry.name);
  }
  candidates_.clear();
  for (const std::string& prefix : prefixes)
    if (check_prefix(prefix)) add_prefix(prefix);  // another would lead elsewhere
  std::ranges::sort(candidates_, {}, [](const Candidate& one) { return std::tie(one.step, one.id); });
  return {};
}

// What is not called after its step has to be read to know where it belongs.
void CheckpointSearch::add_prefix(const std::string& prefix) {
  const auto step = step_in(prefix);
  if (!step) return add_attempts(prefix);
  if (!step_ || step_ == step) candidates_.push_back({*step, {prefix, {}}, {}});
}

void CheckpointSearch::add_attempts(const std::string& prefix) {
  auto listed = list_prefix(*storage_, prefix);
  if (!listed) {
    if (listed.error().code == Errc::not_found) {  // it was never there, or was pruned just now
      is_outdated_ |= !is_of_one_name();
      return;
    }
    Attempt unlisted{
        .id = {prefix, {}}, .state = AttemptState::unreadable, .metadata = {}, .trouble = listed.error()};
    candidates_.push_back({unlisted.step(), unlisted.id, std::move(unlisted)});
    return;
  }
  const auto step = step_in(prefix);
  for (const ListedAttempt& one : *listed) {
    if (!one.is_decided || !is_meant(one.id)) continue;
    if (step || is_of_one_name()) {  // of one name it is the newest attempt that is meant, whatever its step
      candidates_.push_back({step.value_or(0), one.id, {}});
    } else {
      const auto attempt = read_attempt(*storage_, one);
      is_outdated_ |= !attempt;
      const bool may_be_one = attempt && attempt->state != AttemptState::aborted;
      if (may_be_one && (!step_ || step_ == attempt->step()))
        candidates_.push_back({attempt->step(), one.id, {}});
    }
  }
}

bool CheckpointSearch::is_meant(const CheckpointId& id) const {
  return name_.find('/') == name_.npos || to_text(id) == name_;
}

std::optional<Attempt> CheckpointSearch::next() {
  for (;;) {
    // What was pruned gave way to a newer one, of which this listing may not know.
    if (is_outdated_ && lists_left_ > 0) {
      --lists_left_;
      is_outdated_ = false;
      if (auto listed = list(); !listed)
        return Attempt{
            .id = {}, .state = AttemptState::unreadable, .metadata = {}, .trouble = listed.error()};
    }
    if (candidates_.empty()) return {};
    Candidate newest = std::move(candidates_.back());
    candidates_.pop_back();
    if (!newest.attempt && newest.id.attempt.empty()) {
      add_attempts(newest.id.prefix);  // all of them newer than the rest, as their prefix was
      continue;
    }
    if (!newest.attempt) newest.attempt = read_attempt(*storage_, {.id = newest.id, .is_decided = true});
    is_outdated_ |= !newest.attempt;
    if (newest.attempt && (newest.attempt->metadata || newest.attempt->trouble)) {
      lists_left_ = 0;  // from here on it is the next older one that is asked for
      return std::move(newest.attempt);
    }
  }
}

Error CheckpointSearch::nothing_found() const {
  std::string which;
  std::string others;
  if (name_ != "latest") {
    which = fmt::format(" \"{}\"", name_);
    if (const auto newest = find_checkpoint(*storage_, "latest"))
      others = fmt::format("; the newest is {}", newest->id.prefix);
  }
  return {Errc::not_found,
          fmt::format("there is no committed checkpoint{} in {}{}", which, storage_->place(), others),
          {}};
}

Result<CheckpointMetadata> find_checkpoint(Storage& storage, const std::string& name) {
  auto search = CheckpointSearch::begin(storage, name);
  if (!search) return std::unexpected(search.error());
  auto newest = search->next();
  if (!newest) return std::unexpected(search->nothing_found());
  if (newest->trouble) return std::unexpected(*newest->trouble);
  return *std::move(newest->metadata);
}

}  // namespace baton::checkpoint
