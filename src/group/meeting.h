// One operation of a group: who has come to it with what, how it ended, and what each rank gets of it.
//
// It ends once, the same way for everybody: complete, or with one error. Its end is kept for those who have
// not heard of it.
#pragma once

#include <map>
#include <optional>

#include "base/time.h"
#include "group/operation.h"

namespace baton::group {

// What all ranks bring to an operation, times the ranks that hear it: about what the replies to it occupy at
// whoever brings them together.
inline constexpr std::size_t kHeardBytesMax = 512 << 20;

inline constexpr std::size_t kAroundHeld = 128;  // bytes of memory beside each thing that is held, about

// What a rank knows of an operation that ended for it: enough for others to hear the same, should whoever
// brought them together have forgotten.
struct Kept {
  std::string stream;
  std::uint64_t number = 0;
  Operation operation;
  Result<Share> outcome;
  Bytes contribution;
};

class Meeting {
 public:
  Meeting(Operation operation, Rank world_size, Instant now)
      : operation_(std::move(operation)), world_size_(world_size), began_(now) {}

  const Operation& operation() const { return operation_; }
  Instant began() const { return began_; }

  // A rank comes, perhaps once more, and wants to know by `deadline`. Another operation than that of the
  // others, an error in place of bytes, or more bytes than can be handed round is the end of it for all.
  void arrive(Rank rank, const Operation& operation, Result<Bytes> mine, Instant deadline);
  // A rank that was told of its end before it was forgotten here.
  void recall(Rank rank, const Kept& kept);
  void fail(Error error);

  bool has_ended() const { return trouble_ || everything_; }
  bool is_complete() const { return is_complete_; }
  bool is_over() const { return has_ended() || is_complete_; }  // though its outcome may not be known yet
  bool has(Rank rank) const { return brought_.contains(rank); }
  std::size_t came() const { return brought_.size(); }
  std::vector<Rank> present() const;
  bool is_first(Rank rank) const { return !brought_.empty() && brought_.begin()->first == rank; }
  std::vector<Rank> missing() const;

  // Whose time is up first, and when; nobody's if it has ended.
  std::optional<std::pair<Instant, Rank>> first_deadline() const;

  // Of memory, about.
  std::size_t held_bytes() const;

  // What the rank gets, or why nobody gets anything; none while that is not known.
  std::optional<Result<Share>> outcome_for(Rank rank) const;

 private:
  void bring(Rank rank, Bytes mine);
  Rank hearers(Rank of) const;  // how many ranks get what this one brings
  void gather_up();
  void end(Share everything);
  void let_go();

  Operation operation_;  // of the rank that came first
  Rank world_size_;
  Instant began_;
  std::map<Rank, Bytes> brought_;
  std::size_t brought_bytes_ = 0;
  std::size_t heard_bytes_ = 0;  // the same, times those who will hear it
  std::map<Rank, Instant> deadlines_;
  std::optional<Error> trouble_;
  bool is_complete_ = false;
  std::size_t everything_bytes_ = 0;
  Share everything_;  // by rank, or of the root alone; of a gathering that was recalled it may not be known
};

}  // namespace baton::group
