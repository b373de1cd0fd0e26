// What a group tells people of its members.
#include <fmt/format.h>

#include <algorithm>

#include "group/group.h"

namespace baton::group {

std::string in_seconds(Duration duration) {
  return fmt::format("{}.{} s", duration.ms / 1000, duration.ms % 1000 / 100);
}

std::string Group::why_it_went(Rank rank) const {
  if (places_[rank].presence == Presence::left) return "it left before it came";
  if (places_[rank].has_hung_up)
    return fmt::format("its connection broke, and it did not come back within {}",
                       in_seconds(kBackAfterHangUp));
  return fmt::format("nothing was heard of it for {}", in_seconds(time_to_live_));
}

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
    case Presence::absent:
      return fmt::format("{} (has not joined{})", name,
                         place.turned_away.empty() ? "" : ": " + place.turned_away);
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

std::string Group::missing_at(const Meeting& meeting, Instant now) const {
  std::vector<Rank> missing = meeting.missing();
  std::string absent;
  for (std::size_t i = 0; i < std::min(missing.size(), kDescribedMax); ++i)
    absent += (absent.empty() ? "" : ", ") + whereabouts(missing[i], now);
  if (missing.size() > kDescribedMax) {
    missing.erase(missing.begin(), missing.begin() + kDescribedMax);
    absent += " and " + rank_list(missing);
  }
  return absent;
}

Error Group::timed_out(const Meeting& meeting, Rank whose, Instant now) const {
  return {
      Errc::deadline_exceeded,
      fmt::format("{}: {} of {} ranks came before the time of rank {} was up, {} after the first of them; "
                  "missing: {}",
                  title(meeting.operation()), meeting.came(), world_size(), whose,
                  in_seconds(now - meeting.began()), missing_at(meeting, now))};
}

std::string Group::waited_for(const Seat& seat, Instant since, Instant now) const {
  if (seat.generation != generation_) return {};
  std::string text;
  for (const auto& [name, stream] : streams_) {
    for (const auto& [number, held] : stream.meetings) {
      const Meeting& meeting = held.meeting;
      const auto times = [&](Instant at) { return (at - meeting.began()).ms / kWaitToldEvery.ms; };
      if (meeting.is_over() || !meeting.is_first(seat.rank) || times(now) <= times(since)) continue;
      text += fmt::format("{}{}: {} of {} ranks have come in {}; missing: {}", text.empty() ? "" : "; ",
                          title(meeting.operation()), meeting.came(), world_size(),
                          in_seconds(now - meeting.began()), missing_at(meeting, now));
    }
  }
  return text;
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
