// The operations of a group: who comes to which of them, when they end, and who hears of it.
#include <fmt/format.h>

#include <algorithm>

#include "group/group.h"

namespace baton::group {
namespace {

// Operations that ended badly are kept for ranks that have not come yet; one that never comes must not make
// them pile up.
constexpr std::size_t kMeetingsMax = 1024;
constexpr std::size_t kStreamsMax = 64;

}  // namespace

Status Group::check_streams(const std::string& name) const {
  if (streams_.size() < kStreamsMax || streams_.contains(name)) return {};
  return failure(Errc::exhausted, fmt::format("a group has {} streams at most", kStreamsMax));
}

// Behind one that has not ended those that have are kept, however many.
Status Group::check_meetings(const Stream& stream, std::uint64_t number) const {
  if (stream.meetings.size() <= kMeetingsMax || stream.meetings.contains(number)) return {};
  const Meeting& first = stream.meetings.begin()->second.meeting;
  return failure(Errc::exhausted, fmt::format("{} operations were begun since {}, which has not ended",
                                              kMeetingsMax, title(first.operation())));
}

Status Group::check_number(const Stream& stream, Rank rank, const Arrival& arrival) const {
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
  if (arrival.operation.root >= world_size())
    return failure(Errc::invalid_request,
                   fmt::format("{}: there is no rank {}, they are 0 to {}", title(arrival.operation),
                               arrival.operation.root, world_size() - 1));
  if (auto room = check_streams(arrival.stream); !room) return room;
  Stream& stream = streams_[arrival.stream];
  if (arrival.number < stream.forgotten_below) {  // how is not known any more, and it goes on from there
    move_to(stream, seat.rank, std::max(arrival.number, stream.at[seat.rank]));
    answers_.push_back(
        {waiter, failure(Errc::deadline_exceeded, fmt::format("{}: it ended long ago, without rank {}",
                                                              title(arrival.operation), seat.rank))});
    return {};
  }
  if (auto follows = check_number(stream, seat.rank, arrival); !follows) return follows;
  if (auto room = check_meetings(stream, arrival.number); !room) return room;
  move_to(stream, seat.rank, arrival.number);
  places_[seat.rank].last_at = title(arrival.operation);
  Held& held = meeting_at(stream, arrival.number, arrival.operation, now);
  // Who asks again because his connection broke does not wait twice. Should it be another thread of his, the
  // first must not be left without an answer.
  if (const auto before = held.waiting.find(seat.rank); before != held.waiting.end()) {
    waits_.erase(before->second);
    answers_.push_back({before->second,
                        failure(Errc::conflict,
                                fmt::format("{}: rank {} came to it a second time; one thread at a time uses "
                                            "a stream",
                                            title(arrival.operation), seat.rank))});
  }
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
  count_held(stream);
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
  // To one that is complete all came, so all have heard of those before it.
  const auto complete =
      std::ranges::find_if(stream.meetings.rbegin(), stream.meetings.rend(),
                           [](const auto& each) { return each.second.meeting.is_complete(); });
  const std::uint64_t all_are_at = complete == stream.meetings.rend() ? 0 : complete->first;
  while (!stream.meetings.empty()) {
    const auto first = stream.meetings.begin();
    const bool is_heard = first->first < all_are_at || first->second.heard == places_.size();
    if (!is_heard && (stream.meetings.size() <= kMeetingsMax || !first->second.meeting.is_over())) return;
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

void Group::count_held(Stream& stream) {
  held_bytes_ -= stream.held_bytes;
  stream.held_bytes = (stream.at.size() + stream.stopped.size()) * kAroundHeld;
  for (const auto& [number, held] : stream.meetings) stream.held_bytes += held.meeting.held_bytes();
  held_bytes_ += stream.held_bytes;
}

}  // namespace baton::group
