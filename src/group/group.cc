#include "group/group.h"

#include <fmt/format.h>

#include <algorithm>

namespace baton::group {
namespace {

// Operations that ended badly are kept for ranks that have not come yet; one that never comes must not make
// them pile up.
constexpr std::size_t kMeetingsMax = 1024;
constexpr std::size_t kStreamsMax = 64;

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
    if (auto room = check_streams(each.stream); !room) return room;
    Stream& stream = streams_[each.stream];
    if (each.number < stream.forgotten_below) continue;
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

Status Group::check_streams(const std::string& name) const {
  if (streams_.size() < kStreamsMax || streams_.contains(name)) return {};
  return failure(Errc::exhausted, fmt::format("a group has {} streams at most", kStreamsMax));
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
  const auto last = at == stream.at.end() ? stream.meetings.end() : stream.meetings.find(at->second);
  if (last != stream.meetings.end() && arrival.number > at->second && !last->second.meeting.is_over()) {
    return failure(Errc::invalid_request,
                   fmt::format("{}: rank {} is still at {}, which has not ended", title(arrival.operation),
                               rank, title(last->second.meeting.operation())));
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
  if (auto room = check_streams(arrival.stream); !room) return room;
  Stream& stream = streams_[arrival.stream];
  if (auto follows = check_number(stream, seat.rank, arrival); !follows) return follows;
  move_to(stream, seat.rank, arrival.number);
  places_[seat.rank].last_at = title(arrival.operation);
  Held& held = meeting_at(stream, arrival.number, arrival.operation, now);
  // Who asks again because his connection broke does not wait twice.
  if (const auto before = held.waiting.find(seat.rank); before != held.waiting.end())
    waits_.erase(before->second);
  held.waiting[seat.rank] = waiter;
  waits_[waiter] = {arrival.stream, arrival.number, seat.rank};
  due_ = std::min(due_, now + arrival.deadline);
  held.meeting.arrive(seat.rank, arrival.operation, std::move(arrival.mine), now + arrival.deadline);
  note_stop(stream, seat.rank, arrival.number);
  settle(stream);
  return {};
}

void Group::stop(const Seat& seat, const std::string& stream, std::uint64_t number, Instant now) {
  pass(now);
  if (!check(seat, now) || !check_streams(stream)) return;
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
    if (!held.meeting.is_over()) continue;
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

// Whoever is gone will not come.
void Group::note_the_gone(Stream& stream) {
  for (const Rank rank : gone_) {
    for (auto& [number, held] : stream.meetings) {
      if (held.meeting.has(rank)) continue;
      held.meeting.fail({Errc::unavailable, fmt::format("{}: {} is gone: {}", title(held.meeting.operation()),
                                                        who(rank), why_it_went(rank))});
    }
  }
}

// Once a rank is at the next operation it has heard of the one before.
void Group::move_to(Stream& stream, Rank rank, std::uint64_t number) {
  const auto [at, is_first] = stream.at.try_emplace(rank, number);
  const std::uint64_t before = is_first ? 0 : std::exchange(at->second, number);
  for (auto each = stream.meetings.lower_bound(before); each != stream.meetings.end() && each->first < number;
       ++each)
    ++each->second.heard;
}

void Group::tidy(Stream& stream) {
  while (!stream.meetings.empty()) {
    const auto first = stream.meetings.begin();
    const bool is_heard = first->second.heard == places_.size();
    if (!is_heard && (stream.meetings.size() <= kMeetingsMax || !first->second.meeting.has_ended())) return;
    for (const auto& [rank, waiter] : first->second.waiting) {
      waits_.erase(waiter);
      answers_.push_back(
          {waiter, failure(Errc::deadline_exceeded,
                           fmt::format("{}: it ended long ago", title(first->second.meeting.operation())))});
    }
    stream.forgotten_below = first->first + 1;
    stream.meetings.erase(first);
  }
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
