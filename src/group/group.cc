#include "group/group.h"

#include <fmt/format.h>

#include <algorithm>

namespace baton::group {
namespace {

// Operations that ended badly are kept for ranks that have not come yet; one that never comes must not make
// them pile up.
constexpr std::size_t kMeetingsMax = 1024;

std::string in_seconds(Duration duration) {
  return fmt::format("{}.{} s", duration.ms / 1000, duration.ms % 1000 / 100);
}

}  // namespace

Group::Group(const Joining& first, Generation generation, bool resumed, Instant now) {
  begin(generation, first, resumed ? Presence::expected : Presence::absent, now);
}

void Group::begin(Generation generation, const Joining& first, Presence others, Instant now) {
  const Error over{Errc::lease_lost,
                   fmt::format("the generation is over, because {}; join again", why_it_began_)};
  for (const auto& [waiter, wait] : std::exchange(waits_, {}))
    answers_.push_back({waiter, std::unexpected(over)});
  generation_ = generation;
  time_to_live_ = first.time_to_live;
  places_.assign(first.world_size, {.presence = others, .until = now + time_to_live_, .seen = now});
  gone_.clear();
  streams_.clear();
  sit_down(first, now);
}

void Group::sit_down(const Joining& joining, Instant now) {
  places_[joining.rank] = {.presence = Presence::here,
                           .incarnation = joining.incarnation,
                           .where = joining.where,
                           .until = now + time_to_live_,
                           .seen = now,
                           .last_at = {},
                           .doing = {}};
}

Result<Generation> Group::join(const Joining& joining, Generation next, Instant now) {
  pass(now);
  const bool is_known = joining.rank < world_size();
  if (is_known && places_[joining.rank].incarnation == joining.incarnation) {
    // It asks again because it did not hear the answer.
    if (auto seated = check({joining.rank, joining.incarnation, generation_}, now); !seated)
      return std::unexpected(seated.error());
    return generation_;
  }
  const bool is_taken = is_known && places_[joining.rank].presence != Presence::absent;
  if (is_taken || (is_deserted() && joining.world_size != world_size())) {
    why_it_began_ = fmt::format("rank {} joined again{}", joining.rank,
                                joining.where.empty() ? "" : " (" + joining.where + ")");
    begin(next, joining, Presence::absent, now);
    return generation_;
  }
  if (joining.world_size != world_size()) {
    return failure(Errc::conflict,
                   fmt::format("rank {} says that there are {} ranks, and the group has {}; wait until those "
                               "of the older group are gone, or join as one of them",
                               joining.rank, joining.world_size, world_size()));
  }
  sit_down(joining, now);
  return generation_;
}

Status Group::resume(const Joining& joining, Generation generation, std::span<const Kept> kept, Instant now) {
  pass(now);
  if (generation > generation_) {  // who was there first was of an older one
    why_it_began_ = fmt::format("rank {} knows a newer one", joining.rank);
    begin(generation, joining, Presence::expected, now);
  }
  if (generation < generation_ || joining.rank >= world_size() || joining.world_size != world_size())
    return check({joining.rank, joining.incarnation, generation}, now);
  Place& place = places_[joining.rank];
  if (place.presence == Presence::expected) sit_down(joining, now);
  if (auto seated = check({joining.rank, joining.incarnation, generation}, now); !seated) return seated;
  for (const Kept& each : kept) {
    Stream& stream = streams_[each.stream];
    if (each.number < stream.forgotten_below) continue;
    auto& at = stream.at[joining.rank];
    at = std::max(at, each.number);
    meeting_at(stream, each.number, each.operation, now).meeting.recall(joining.rank, each);
    settle(stream);
  }
  return {};
}

// Whoever is heard of is alive. Whoever is of another generation, or was given up, is told so.
Status Group::check(const Seat& seat, Instant now) {
  if (seat.generation != generation_ || seat.rank >= world_size()) {
    return failure(Errc::lease_lost,
                   fmt::format("the generation of rank {} is over, because {}; join again", seat.rank,
                               why_it_began_.empty() ? "a newer one began" : why_it_began_));
  }
  Place& place = places_[seat.rank];
  if (place.presence == Presence::expected)
    return failure(Errc::not_found,
                   fmt::format("rank {} has to resume: the coordinator was started again", seat.rank));
  if (place.incarnation != seat.incarnation)
    return failure(Errc::lease_lost, fmt::format("another process is rank {} now: {}", seat.rank,
                                                 place.where.empty() ? "it has joined later" : place.where));
  if (place.presence == Presence::lost) {
    return failure(Errc::lease_lost, fmt::format("rank {} was given up: {}; join again, all ranks", seat.rank,
                                                 why_lost(place)));
  }
  if (place.presence == Presence::left)
    return failure(Errc::lease_lost, fmt::format("rank {} has left", seat.rank));
  place.until = now + time_to_live_;
  place.seen = now;
  place.has_hung_up = false;
  return {};
}

Status Group::beat(const Seat& seat, std::optional<std::string_view> doing, Instant now) {
  pass(now);
  if (auto seated = check(seat, now); !seated) return seated;
  if (doing) places_[seat.rank].doing = *doing;
  return {};
}

void Group::hung_up(const Seat& seat, Instant now) {
  if (seat.generation != generation_ || seat.rank >= world_size()) return;
  Place& place = places_[seat.rank];
  if (place.incarnation != seat.incarnation || place.presence != Presence::here) return;
  place.until = std::min(place.until, now + kBackAfterHangUp);
  place.has_hung_up = true;
}

void Group::leave(const Seat& seat, Instant now) {
  pass(now);
  if (!check(seat, now)) return;
  places_[seat.rank].presence = Presence::left;
  gone_.insert(seat.rank);
  for (auto& [name, stream] : streams_) settle(stream);
}

Status Group::check_number(const Stream& stream, Rank rank, const Arrival& arrival) const {
  if (arrival.number < stream.forgotten_below) {
    return failure(Errc::deadline_exceeded,
                   fmt::format("{}: it ended long ago, without rank {}", title(arrival.operation), rank));
  }
  const auto at = stream.at.find(rank);
  if (at != stream.at.end() && (arrival.number < at->second || arrival.number > at->second + 1)) {
    return failure(Errc::invalid_request,
                   fmt::format("{}: number {} of rank {} does not follow its number {}",
                               title(arrival.operation), arrival.number, rank, at->second));
  }
  const auto meeting = stream.meetings.find(arrival.number);
  if (meeting == stream.meetings.end()) return {};
  const Operation& there = meeting->second.meeting.operation();
  if (meeting->second.meeting.is_complete() && there != arrival.operation) {
    return failure(Errc::conflict, fmt::format("the others were at {}, and rank {} is at {}", title(there),
                                               rank, title(arrival.operation)));
  }
  return {};
}

Status Group::arrive(const Seat& seat, Arrival arrival, Waiter waiter, Instant now) {
  pass(now);
  if (auto seated = check(seat, now); !seated) return seated;
  Stream& stream = streams_[arrival.stream];
  if (auto follows = check_number(stream, seat.rank, arrival); !follows) return follows;
  stream.at[seat.rank] = arrival.number;
  places_[seat.rank].last_at = title(arrival.operation);
  Held& held = meeting_at(stream, arrival.number, arrival.operation, now);
  // Who asks again because his connection broke does not wait twice.
  if (const auto before = held.waiting.find(seat.rank); before != held.waiting.end())
    waits_.erase(before->second);
  held.waiting[seat.rank] = waiter;
  waits_[waiter] = {arrival.stream, arrival.number, seat.rank};
  held.meeting.arrive(seat.rank, arrival.operation, std::move(arrival.mine), now + arrival.deadline);
  note_stop(stream, seat.rank, arrival.number);
  settle(stream);
  return {};
}

void Group::stop(const Seat& seat, const std::string& stream, std::uint64_t number, Instant now) {
  pass(now);
  if (!check(seat, now)) return;
  streams_[stream].stopped[seat.rank] = number;
  note_stop(streams_[stream], seat.rank, number);
  settle(streams_[stream]);
}

void Group::note_stop(Stream& stream, Rank rank, std::uint64_t number) {
  const auto stopped = stream.stopped.find(rank);
  const auto held = stream.meetings.find(number);
  if (stopped == stream.stopped.end() || stopped->second != number || held == stream.meetings.end()) return;
  Meeting& vain = held->second.meeting;
  if (!vain.has(rank)) return;
  vain.fail(
      {Errc::closed, fmt::format("{}: rank {} was stopped while it waited", title(vain.operation()), rank)});
}

void Group::forget(Waiter waiter) {
  const auto wait = waits_.find(waiter);
  if (wait == waits_.end()) return;
  streams_[wait->second.stream].meetings.at(wait->second.number).waiting.erase(wait->second.rank);
  waits_.erase(wait);
}

Group::Held& Group::meeting_at(Stream& stream, std::uint64_t number, const Operation& operation,
                               Instant now) {
  return stream.meetings.try_emplace(number, Held{Meeting(operation, world_size(), now), {}}).first->second;
}

// Ends what has to end, tells whoever waits for it, and lets go of what everybody has heard.
void Group::settle(Stream& stream) {
  note_the_gone(stream);
  for (auto& [number, held] : stream.meetings) {
    if (!held.meeting.is_complete() && !held.meeting.has_ended()) continue;
    std::erase_if(held.waiting, [&](const auto& waiting) {
      const auto outcome = held.meeting.outcome_for(waiting.first);
      if (!outcome) return false;
      answers_.push_back({waiting.second, *outcome});
      waits_.erase(waiting.second);
      return true;
    });
  }
  tidy(stream);
}

std::string Group::why_lost(const Place& place) const {
  if (place.has_hung_up)
    return fmt::format("its connection broke, and it did not come back within {}",
                       in_seconds(kBackAfterHangUp));
  return fmt::format("nothing was heard of it for {}", in_seconds(time_to_live_));
}

// Whoever is gone will not come.
void Group::note_the_gone(Stream& stream) {
  for (const Rank rank : gone_) {
    const std::string why =
        places_[rank].presence == Presence::lost ? why_lost(places_[rank]) : "it left before it came";
    for (auto& [number, held] : stream.meetings) {
      if (held.meeting.has(rank)) continue;
      held.meeting.fail({Errc::unavailable,
                         fmt::format("{}: {} is gone: {}", title(held.meeting.operation()), who(rank), why)});
    }
  }
}

// Once a rank is at the next operation it has heard of the one before.
void Group::tidy(Stream& stream) {
  std::uint64_t all_beyond = stream.at.size() == places_.size() ? UINT64_MAX : 0;
  for (const auto& [rank, number] : stream.at) all_beyond = std::min(all_beyond, number);
  while (!stream.meetings.empty()) {
    const auto first = stream.meetings.begin();
    const bool is_heard = first->first < all_beyond;
    if (!is_heard && (stream.meetings.size() <= kMeetingsMax || !first->second.meeting.has_ended())) return;
    stream.forgotten_below = first->first + 1;
    stream.meetings.erase(first);
  }
}

void Group::pass(Instant now) {
  bool lost = false;
  for (Rank rank = 0; rank < world_size(); ++rank) {
    if (!places_[rank].has_term() || places_[rank].until > now) continue;
    places_[rank].presence = Presence::lost;
    gone_.insert(rank);
    lost = true;
  }
  for (auto& [name, stream] : streams_) {
    bool ended = lost;
    for (auto& [number, held] : stream.meetings) {
      const auto first = held.meeting.first_deadline();
      if (!first || first->first > now) continue;
      held.meeting.fail(timed_out(held.meeting, first->second, now));
      ended = true;
    }
    if (ended) settle(stream);
  }
}

Instant Group::next() const {
  Instant next{INT64_MAX};
  for (const Place& place : places_) {
    if (place.has_term()) next = std::min(next, place.until);
  }
  for (const auto& [name, stream] : streams_) {
    for (const auto& [number, held] : stream.meetings) {
      if (const auto first = held.meeting.first_deadline()) next = std::min(next, first->first);
    }
  }
  return next;
}

bool Group::is_deserted() const { return std::ranges::none_of(places_, &Place::has_term); }

std::string Group::who(Rank rank) const {
  const std::string& where = places_[rank].where;
  return where.empty() ? fmt::format("rank {}", rank) : fmt::format("rank {} ({})", rank, where);
}

std::string Group::whereabouts(Rank rank, Instant now) const {
  const Place& place = places_[rank];
  const std::string name = fmt::format("rank {}", rank);
  const std::string where = place.where.empty() ? "" : place.where + ", ";
  const std::string ago = in_seconds(now - place.seen) + " ago";
  switch (place.presence) {
    case Presence::absent: return name + " (has not joined)";
    case Presence::expected: return name + " (has not come back since the coordinator was started again)";
    case Presence::left: return fmt::format("{} ({}dead: it left {})", name, where, ago);
    case Presence::lost: return fmt::format("{} ({}dead: last heard of {})", name, where, ago);
    case Presence::here: break;
  }
  std::string text = fmt::format("{} ({}alive, heard of {}, ", name, where, ago);
  text += place.last_at.empty() ? "at no operation yet" : "last at " + place.last_at;
  if (!place.doing.empty()) text += ", doing " + place.doing;
  return text + ")";
}

Error Group::timed_out(const Meeting& meeting, Rank whose, Instant now) const {
  std::string absent;
  for (const Rank rank : meeting.missing()) absent += (absent.empty() ? "" : ", ") + whereabouts(rank, now);
  return {
      Errc::deadline_exceeded,
      fmt::format("{}: {} of {} ranks came before the time of rank {} was up, {} after the first of them; "
                  "missing: {}",
                  title(meeting.operation()), meeting.came(), world_size(), whose,
                  in_seconds(now - meeting.began()), absent)};
}

std::vector<Group::Whereabouts> Group::members(Instant now) const {
  static constexpr std::string_view kWords[] = {"not joined", "expected", "here", "left", "lost"};
  std::vector<Whereabouts> all;
  for (Rank rank = 0; rank < world_size(); ++rank) {
    const Place& place = places_[rank];
    all.push_back({.rank = rank,
                   .state = std::string(kWords[static_cast<std::size_t>(place.presence)]),
                   .where = place.where,
                   .at = place.last_at,
                   .doing = place.doing,
                   .silent = place.presence == Presence::absent ? Duration{} : now - place.seen});
  }
  return all;
}

}  // namespace baton::group
