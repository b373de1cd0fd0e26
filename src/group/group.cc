#include "group/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace baton::group {

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
  held_bytes_ = 0;
  due_ = now + time_to_live_;
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
  due_ = std::min(due_, now + time_to_live_);
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
  // Of the same size it may be one that comes late, and is to hear at once who has gone.
  if (is_taken || (is_deserted() && joining.world_size != world_size())) {
    why_it_began_ = fmt::format("rank {} joined again{}", joining.rank,
                                joining.where.empty() ? "" : " (" + joining.where + ")");
    begin(next, joining, Presence::absent, now);
    return generation_;
  }
  if (joining.world_size != world_size()) {
    // Those who wait for this rank will want to know.
    if (is_known)
      places_[joining.rank].turned_away =
          fmt::format("{}{}says that there are {} ranks, not {}", joining.where,
                      joining.where.empty() ? "it " : " ", joining.world_size, world_size());
    return failure(Errc::conflict,
                   fmt::format("rank {} says that there are {} ranks, and the group has {}; wait until those "
                               "of the older group are gone, or join as one of them",
                               joining.rank, joining.world_size, world_size()));
  }
  if (auto in = wait_outside(joining, now); !in) return std::unexpected(in.error());
  sit_down(joining, now);
  return generation_;
}

// Where all have gone, one who never was there may be late, and is to hear how it ended. But the job may have
// been started again: then one of those who had gone soon joins, which begins the generation of both.
Status Group::wait_outside(const Joining& joining, Instant now) {
  const auto is_there = [](const Place& place) { return place.has_term() && !place.has_hung_up; };
  if (std::ranges::any_of(places_, is_there)) return {};
  Place& place = places_[joining.rank];
  if (std::exchange(place.knocking, joining.incarnation) != joining.incarnation) place.knocked = now;
  if (now - place.knocked >= joining.patience) return {};
  return failure(Errc::conflict,
                 fmt::format("the ranks that were there have gone; rank {} is let in as soon as one of them "
                             "joins again, or after {}, to hear how it ended without it",
                             joining.rank, in_seconds(joining.patience)));
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
    if (auto room = check_streams(each.stream); !room) return room;
    Stream& stream = streams_[each.stream];
    if (each.number < stream.forgotten_below) continue;
    if (auto room = check_meetings(stream, each.number); !room) return room;
    const auto at = stream.at.find(joining.rank);
    if (at == stream.at.end() || at->second < each.number) move_to(stream, joining.rank, each.number);
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
                                                 why_it_went(seat.rank)));
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
  due_ = std::min(due_, place.until);
}

void Group::leave(const Seat& seat, Instant now) {
  pass(now);
  if (!check(seat, now)) return;
  goes(seat.rank, Presence::left);
  for (auto& [name, stream] : streams_) settle(stream);
}

// What it waits for it does not hear of any more.
void Group::goes(Rank rank, Presence how) {
  places_[rank].presence = how;
  gone_.insert(rank);
  std::erase_if(waits_, [&](const auto& each) {
    const auto& [waiter, wait] = each;
    if (wait.rank != rank) return false;
    streams_[wait.stream].meetings.at(wait.number).waiting.erase(rank);
    answers_.push_back(
        {waiter, failure(Errc::lease_lost, fmt::format("rank {} is not there any more, because "
                                                       "{}; join again, all ranks",
                                                       rank, why_it_went(rank)))});
    return true;
  });
}

void Group::pass(Instant now) {
  if (now < due_) return;
  bool lost = false;
  for (Rank rank = 0; rank < world_size(); ++rank) {
    if (!places_[rank].has_term() || places_[rank].until > now) continue;
    goes(rank, Presence::lost);
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
  due_ = Instant{INT64_MAX};
  for (const Place& place : places_) {
    if (place.has_term()) due_ = std::min(due_, place.until);
  }
  for (const auto& [name, stream] : streams_) {
    for (const auto& [number, held] : stream.meetings) {
      if (const auto first = held.meeting.first_deadline()) due_ = std::min(due_, first->first);
    }
  }
}

bool Group::is_deserted() const { return std::ranges::none_of(places_, &Place::has_term); }

}  // namespace baton::group
