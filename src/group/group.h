// A group of ranks at whoever brings them together: who is a member, and which operations they meet in.
//
// It decides by what it is told and by the time it is given, so that a server, threads of one process and a
// simulation share it. It is not recorded: a group that is forgotten, because the coordinator was started
// again, is put together by its ranks. Each says what it knows of the last operations it has been through,
// so that one who missed an answer gets the answer the others got.
//
//   generation   the same ranks, from when the first joined. It ends when one joins again; then all have to.
//   stream       operations that are counted apart, as those of a thread that saves in the background
//   number       of an operation in its stream. The n-th calls of all ranks belong together.
//
// A rank whose time to live is over is lost for the rest of the generation, and whoever waits for it hears
// that; so does it, should it come back.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "group/meeting.h"

namespace baton::group {

inline constexpr Duration kTimeToLive = seconds(10);
// Of those who are missing, in words; of the others the numbers. Every rank that came is told all of it.
inline constexpr std::size_t kDescribedMax = 16;
// For people who wait: how often they hear for whom.
inline constexpr Duration kWaitToldEvery = seconds(30);
inline constexpr Duration kBackAfterHangUp = seconds(1);  // for a rank whose connection broke

// Who waits for an answer, by whatever number the caller knows him.
using Waiter = std::uint64_t;

struct Joining {
  Rank rank = 0;
  Rank world_size = 0;
  std::string incarnation;  // different each time a process joins
  std::string where;        // for people: "gpu07, pid 4711"
  Duration time_to_live = kTimeToLive;
  Duration patience{};  // before it joins those who have all gone; until then it asks again
};

// As which member somebody speaks.
struct Seat {
  Rank rank = 0;
  std::string incarnation;
  Generation generation = 0;
  friend bool operator==(const Seat&, const Seat&) = default;
};

struct Arrival {
  std::string stream;  // "" is that of the rank itself
  std::uint64_t number = 0;
  Operation operation;
  Result<Bytes> mine;
  Duration deadline;
};

struct Answer {
  Waiter waiter = 0;
  Result<Share> outcome;
};

class Group {
 public:
  // With its first member. One that is `resumed` is known to its ranks from before, and all are to come back.
  Group(const Joining& first, Generation generation, bool resumed, Instant now);

  Generation generation() const { return generation_; }
  Rank world_size() const { return static_cast<Rank>(places_.size()); }

  // If somebody has or had the place, `next` begins, of as many ranks as the one who joins says. CONFLICT: it
  // is to ask again, until those of another size have gone, or its patience is over.
  Result<Generation> join(const Joining& joining, Generation next, Instant now);
  // A member who lost sight of the group, which may have forgotten him.
  Status resume(const Joining& joining, Generation generation, std::span<const Kept> kept, Instant now);
  // Alive, and what it does, if there is something new to say.
  Status beat(const Seat& seat, std::optional<std::string_view> doing, Instant now);
  // Its connection broke: it has little time to come back.
  void hung_up(const Seat& seat, Instant now);
  void leave(const Seat& seat, Instant now);

  // Refused, or the answer follows, among those to be taken: how the operation ended.
  Status arrive(const Seat& seat, Arrival arrival, Waiter waiter, Instant now);
  // The rank does not want to wait any longer, though it may not have come yet: the others are told.
  void stop(const Seat& seat, const std::string& stream, std::uint64_t number, Instant now);
  void forget(Waiter waiter);

  void pass(Instant now);                // time
  Instant next() const { return due_; }  // when it is worth passing time again
  std::vector<Answer> take_answers() { return std::exchange(answers_, {}); }

  bool is_deserted() const;                               // nobody is there, and nobody is to come
  std::size_t held_bytes() const { return held_bytes_; }  // of memory, by its operations, about

  struct Whereabouts {
    Rank rank = 0;
    std::string state;  // here, not joined, left, lost
    std::string where;
    std::string at;  // the last operation it came to
    std::string doing;
    Duration silent;
  };
  std::vector<Whereabouts> members(Instant now) const;
  // Who is missing at an operation, if between the two instants it has lasted kWaitToldEvery once more. Only
  // for the first rank of those who wait there, so that a job of many says it once; empty for the others.
  std::string waited_for(const Seat& seat, Instant since, Instant now) const;

 private:
  enum class Presence : std::uint8_t { absent, expected, here, left, lost };
  struct Place {
    Presence presence = Presence::absent;
    std::string incarnation;
    std::string where;
    Instant until;  // if it is here, or expected back
    Instant seen;
    std::string last_at;
    std::string doing;
    std::string turned_away;   // who wanted to come, and was not let in
    std::string knocking;      // the incarnation of who asks whether the others join again
    Instant knocked;           // since when
    bool has_hung_up = false;  // its connection broke, and it was not heard of since
    bool has_term() const { return presence == Presence::here || presence == Presence::expected; }
  };
  struct Held {
    Meeting meeting;
    std::map<Rank, Waiter> waiting;
    std::size_t heard = 0;  // ranks that are beyond it
  };
  struct Stream {
    std::map<std::uint64_t, Held> meetings;  // by number
    std::map<Rank, std::uint64_t> at;        // the last one each came to
    std::uint64_t forgotten_below = 0;
    std::map<Rank, std::uint64_t> stopped;  // where each does not want to wait any longer
    std::size_t held_bytes = 0;
  };
  struct Wait {
    std::string stream;
    std::uint64_t number = 0;
    Rank rank = 0;
  };

  void begin(Generation generation, const Joining& first, Presence others, Instant now);
  void sit_down(const Joining& joining, Instant now);
  Status wait_outside(const Joining& joining, Instant now);
  Status check(const Seat& seat, Instant now);
  Status check_streams(const std::string& name) const;
  Status check_meetings(const Stream& stream, std::uint64_t number) const;
  Status check_number(const Stream& stream, Rank rank, const Arrival& arrival) const;
  Held& meeting_at(Stream& stream, std::uint64_t number, const Operation& operation, Instant now);
  void move_to(Stream& stream, Rank rank, std::uint64_t number);
  void goes(Rank rank, Presence how);
  void note_stop(Stream& stream, Rank rank, std::uint64_t number);
  void settle(Stream& stream);  // in which something happened
  void note_the_gone(Stream& stream);
  void tidy(Stream& stream);
  void count_held(Stream& stream);
  std::string whereabouts(Rank rank, Instant now) const;
  std::string who(Rank rank) const;
  std::string why_it_went(Rank rank) const;
  std::string missing_at(const Meeting& meeting, Instant now) const;
  Error timed_out(const Meeting& meeting, Rank whose, Instant now) const;

  Generation generation_ = 0;
  std::string why_it_began_;
  Duration time_to_live_;
  std::vector<Place> places_;  // by rank
  std::set<Rank> gone_;
  std::map<std::string, Stream> streams_;
  std::size_t held_bytes_ = 0;
  std::map<Waiter, Wait> waits_;
  std::vector<Answer> answers_;
  Instant due_;  // nothing happens by time alone before
};

std::string in_seconds(Duration duration);

}  // namespace baton::group
