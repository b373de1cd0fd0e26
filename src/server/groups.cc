#include "server/groups.h"

#include <fmt/format.h>

#include <algorithm>

namespace baton::server {
namespace {

constexpr std::size_t kGroupsMax = 10'000;
constexpr std::size_t kPlacesMax = 1'000'000;  // of all groups together
constexpr Duration kHeldRetry = seconds(1);
constexpr Duration kDesertedKept = minutes(1);  // so that who comes late hears of those who are gone

std::unexpected<Error> unknown(const Groups::Name& name) {
  return failure(Errc::not_found, "no group '" + name.second +
                                      "' is known here; a rank that knows it from before has to resume it");
}

group::Share as_share(std::string_view text) {
  if (text.empty()) return {};
  const ByteView bytes = bytes_of(text);
  return std::make_shared<const std::vector<Bytes>>(1, Bytes(bytes.begin(), bytes.end()));
}

}  // namespace

Result<group::Generation> Groups::join(const Name& name, const group::Joining& joining, Instant now) {
  auto entry = entries_.find(name);
  if (entry == entries_.end()) {
    if (auto room = check_room(joining); !room) return std::unexpected(room.error());
    entry = entries_.try_emplace(name, Entry{group::Group(joining, ++last_, false, now), {}}).first;
    looked_at(entry, now);
    return entry->second.group.generation();
  }
  group::Group& group = entry->second.group;
  if (joining.world_size > group.world_size()) {
    if (auto room = check_room(joining); !room) return std::unexpected(room.error());
  }
  const group::Generation next = std::max(last_, group.generation()) + 1;
  const auto generation = group.join(joining, next, now);
  if (generation && *generation == last_ + 1) ++last_;
  looked_at(entry, now);
  return generation;
}

Status Groups::resume(const Name& name, const group::Joining& joining, group::Generation generation,
                      std::span<const group::Kept> kept, Instant now) {
  auto entry = entries_.find(name);
  if (entry == entries_.end() || joining.world_size > entry->second.group.world_size()) {
    if (auto room = check_room(joining); !room) return room;
  }
  if (auto room = check_held(); !kept.empty() && !room) return room;
  if (entry == entries_.end())
    entry = entries_.try_emplace(name, Entry{group::Group(joining, generation, true, now), {}}).first;
  const Status resumed = entry->second.group.resume(joining, generation, kept, now);
  looked_at(entry, now);
  return resumed;
}

Status Groups::check_room(const group::Joining& joining) const {
  std::size_t places = joining.world_size;
  for (const auto& [name, entry] : entries_) places += entry.group.world_size();
  if (entries_.size() < kGroupsMax && places <= kPlacesMax) return {};
  return failure(Errc::exhausted, "there are as many groups and ranks as this server takes");
}

Status Groups::check_held() const {
  if (held_bytes_ <= held_bytes_max_) return {};
  return std::unexpected(
      Error{Errc::exhausted,
            fmt::format("operations of groups use {} bytes of memory, and {} is the most; come again when "
                        "some have ended",
                        held_bytes_, held_bytes_max_),
            kHeldRetry});
}

void Groups::leave(const Name& name, const group::Seat& seat, Instant now) {
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return;
  entry->second.group.leave(seat, now);
  looked_at(entry, now);
}

void Groups::stop(const Name& name, const group::Seat& seat, const std::string& stream, std::uint64_t number,
                  Instant now) {
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return;
  entry->second.group.stop(seat, stream, number, now);
  looked_at(entry, now);
}

Status Groups::arrive(Operation& operation, const Name& name, const group::Seat& seat, group::Arrival arrival,
                      Instant now) {
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return unknown(name);
  if (auto room = check_held(); !room) return room;
  const group::Waiter waiter = ++last_waiter_;
  const Status arrived = entry->second.group.arrive(seat, std::move(arrival), waiter, now);
  if (arrived) {
    waiters_[waiter] = &operation;
    places_.emplace(&operation, Place{entry, seat, waiter});
  }
  looked_at(entry, now);
  return arrived;
}

Status Groups::watch(Operation& operation, const Name& name, const group::Seat& seat,
                     std::optional<std::string_view> doing, Instant deadline, Instant now) {
  const auto entry = entries_.find(name);
  if (entry == entries_.end()) return unknown(name);
  if (auto alive = entry->second.group.beat(seat, doing, now); !alive) return alive;
  entry->second.watches.emplace(&operation, Watch{seat, now, deadline});
  entry->second.first_deadline = std::min(entry->second.first_deadline, deadline);
  places_.emplace(&operation, Place{entry, seat});
  looked_at(entry, now);
  return {};
}

bool Groups::forget(Operation& operation, Instant now) {
  const auto found = places_.find(&operation);
  if (found == places_.end()) return false;
  const auto [entry, seat, waiter] = found->second;
  places_.erase(found);
  // It may have come back on another connection before this one was heard to break.
  auto& watches = entry->second.watches;
  const auto is_its_own = [&](const auto& watch) { return watch.second.seat == seat; };
  if (watches.erase(&operation) > 0 && std::ranges::none_of(watches, is_its_own))
    entry->second.group.hung_up(seat, now);
  if (waiter != 0) entry->second.group.forget(waiter);
  waiters_.erase(waiter);
  looked_at(entry, now);
  return true;
}

void Groups::answer(Operation& operation, Result<group::Share> outcome) {
  places_.erase(&operation);
  answered_.push_back({&operation, std::move(outcome)});
}

void Groups::looked_at(Entries::iterator entry, Instant now) {
  group::Group& group = entry->second.group;
  held_bytes_ += group.held_bytes() - std::exchange(entry->second.held_bytes, group.held_bytes());
  for (group::Answer& each : group.take_answers()) {
    const auto waiter = waiters_.find(each.waiter);
    if (waiter == waiters_.end()) continue;
    answer(*waiter->second, std::move(each.outcome));
    waiters_.erase(waiter);
  }
  if (std::exchange(entry->second.watched, group.generation()) != group.generation()) {
    std::erase_if(entry->second.watches, [&](const auto& watch) {
      if (watch.second.seat.generation == group.generation()) return false;
      answer(*watch.first, failure(Errc::lease_lost, "the generation is over; join again"));
      return true;
    });
  }
  Instant due = group.is_deserted() ? now + kDesertedKept : group.next();
  if (!entry->second.watches.empty()) due = std::min(due, entry->second.first_deadline);
  due_.erase({entry->second.due, &entry->first});
  entry->second.due = due;
  due_.emplace(due, &entry->first);
}

std::vector<Groups::Answered> Groups::take(Instant now) {
  std::vector<Entries::iterator> overdue;
  for (auto at = due_.begin(); at != due_.end() && at->first <= now; ++at)
    overdue.push_back(entries_.find(*at->second));
  for (const Entries::iterator here : overdue) {
    group::Group& group = here->second.group;
    if (group.is_deserted() && here->second.watches.empty()) {
      due_.erase({here->second.due, &here->first});
      held_bytes_ -= here->second.held_bytes;
      entries_.erase(here);
      continue;
    }
    group.pass(now);
    Instant& first = here->second.first_deadline;
    first = {INT64_MAX};
    std::erase_if(here->second.watches, [&](const auto& watch) {
      if (watch.second.deadline > now) {
        first = std::min(first, watch.second.deadline);
        return false;
      }
      // It is alive if it asks again: a connection also stands while its process is suspended.
      const std::string waited_for = group.waited_for(watch.second.seat, watch.second.since, now);
      answer(*watch.first, as_share(waited_for));
      return true;
    });
    looked_at(here, now);
  }
  return std::exchange(answered_, {});
}

std::vector<Groups::Answered> Groups::take_all(const Error& why) {
  for (const auto& [operation, place] : std::exchange(places_, {}))
    answered_.push_back({operation, std::unexpected(why)});
  due_.clear();
  entries_.clear();
  held_bytes_ = 0;
  waiters_.clear();
  return std::exchange(answered_, {});
}

Instant Groups::next() const {
  if (!answered_.empty()) return {};
  return due_.empty() ? Instant{INT64_MAX} : due_.begin()->first;
}

const group::Group* Groups::find(const Name& name) const {
  const auto entry = entries_.find(name);
  return entry == entries_.end() ? nullptr : &entry->second.group;
}

std::vector<std::pair<std::string, const group::Group*>> Groups::all(std::string_view ns) const {
  std::vector<std::pair<std::string, const group::Group*>> found;
  for (const auto& [name, entry] : entries_) {
    if (name.first == ns) found.emplace_back(name.second, &entry.group);
  }
  return found;
}

}  // namespace baton::server
